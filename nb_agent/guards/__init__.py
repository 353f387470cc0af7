"""What stands between a model's wish and its carrying out: paths, statements, secrets, strangers' words, leave, repeats.

Each module is one fence, a function of values that knows no run, no tool's code and no view; `tools.calling` puts them in force.
"""
