"""SQL that people write: definitions, constants, predicates and expressions."""
