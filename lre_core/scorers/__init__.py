"""The bundled weights, a model card beside each."""
