"""What the notebooks bring along: tools for one folder, exercises that check themselves, the demo, and what runs the notebooks.

Nothing else in the package imports it; it is written for learners to read.
"""
