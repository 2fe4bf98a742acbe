from tests.contract.conftest import catalog, lake, lake_url, raw, sql_on

__all__ = ["catalog", "lake", "lake_url", "raw", "sql_on"]
