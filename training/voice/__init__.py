"""Training of the embedded voice: our own speech -> small codec -> small Dia -> assets/nano.

Nothing here is imported by the app. See training/README.md for the stages.
"""
