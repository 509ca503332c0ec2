"""Values: JSON tokens of an image become typed Arrow columns, exactly or not at all."""
