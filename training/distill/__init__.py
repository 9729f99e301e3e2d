"""Distils a checkpoint's guidance into a student (docs/distillation.md)."""
