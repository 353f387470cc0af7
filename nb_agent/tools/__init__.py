"""Tools: functions that a model may ask for, what it is told of them, and how its calls are carried out.

Nothing is imported here, so that importing one of the modules stays as cheap as that module is.
"""
