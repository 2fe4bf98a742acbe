from tests.contract.conftest import lake, lake_url, raw, sql_on

__all__ = ["lake", "lake_url", "raw", "sql_on"]
