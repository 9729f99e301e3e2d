"""Exporting a model: its prepared weights in a folder that loads without the original.

exporter.py writes and checks the folder, base_model.py describes what it is made from, card.py
writes its model card. Reading such a folder is model/weights/packed_cache.py.
"""
