"""The nouns: frozen records that pass from one step to the next unchanged."""
