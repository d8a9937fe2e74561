"""Edits of manifests: `accept` and `export` write live values into documents, and change nothing else in a file.

`place` decides which document gets a value, `edits` changes the values of documents, and `yaml_edit` their texts.
"""
