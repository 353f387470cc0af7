"""Ready tools, for lessons and for use: files of one folder, a SQLite database, a small shop, a clock, a calculator.

They are ordinary tools made with `nb_agent.tool`, and each keeps inside its fence (see `guards`).
"""
