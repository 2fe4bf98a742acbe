"""What brings lakes of earlier versions of the metadata schema to the present one, step by step."""
