"""Functions of DuckDB that depend on more than their arguments, which no expression may call. Pure.

A test compares the lists with what DuckDB itself says of its functions.
"""

from __future__ import annotations

_AGGREGATES = """
any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null
arg_max_nulls_last arg_min arg_min_null arg_min_nulls_last argmax argmin array_agg avg bit_and bit_or
bit_xor bitstring_agg bool_and bool_or combine_aggr corr count count_if count_star countif covar_pop
covar_samp cume_dist decimal_average dense_rank entropy favg fill first first_value fsum geomean
geometric_mean group_concat histogram histogram_exact json_group_array json_group_object
json_group_structure kahan_sum kurtosis kurtosis_pop lag last last_value lead list listagg lttb mad max
max_by mean median min min_by mode nth_value ntile percent_rank product quantile quantile_cont
quantile_disc rank rank_dense regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx
regr_sxy regr_syy reservoir_quantile row_number sem skewness stddev stddev_pop stddev_samp string_agg sum
sum_no_overflow sumkahan var_pop var_samp variance variant_group_array variant_group_object wavg
weighted_avg
"""

_ROWS = """
arrow_scan arrow_scan_dumb checkpoint create_external_resource deregister_external_resource
destroy_external_resource disable_logging disable_profiling duckdb_approx_database_count
duckdb_available_metrics duckdb_columns duckdb_connection_count duckdb_constraints
duckdb_coordinate_systems duckdb_databases duckdb_dependencies duckdb_dialects duckdb_eviction_queues
duckdb_extension_repositories duckdb_extensions duckdb_external_file_cache duckdb_external_resource_types
duckdb_external_resources duckdb_functions duckdb_grammar_extensions duckdb_indexes duckdb_keywords
duckdb_log_contexts duckdb_logs duckdb_logs_parsed duckdb_memory duckdb_optimizers
duckdb_prepared_statements duckdb_profiling_settings duckdb_schemas duckdb_secret_type_parameters
duckdb_secret_types duckdb_secrets duckdb_sequences duckdb_settings duckdb_table_sample duckdb_tables
duckdb_temporary_files duckdb_triggers duckdb_types duckdb_variables duckdb_views enable_logging
enable_profiling force_checkpoint generate_subscripts histogram_values icu_calendar_names json_each
json_execute_serialized_sql json_tree pandas_scan parquet_bloom_probe parquet_file_metadata
parquet_full_metadata parquet_kv_metadata parquet_metadata parquet_scan parquet_schema pg_timezone_names
pragma_collations pragma_database_size pragma_metadata_info pragma_platform pragma_show
pragma_storage_info pragma_table_info pragma_user_agent pragma_version python_arrow_scan
python_map_function query query_table read_blob read_csv read_csv_auto read_duckdb read_json
read_json_auto read_json_objects read_json_objects_auto read_ndjson read_ndjson_auto read_ndjson_objects
read_parquet read_single_csv_file read_single_json_file read_single_parquet_file read_text
regexp_split_to_table register_external_resource register_external_resource_type repeat_row seq_scan
sniff_csv summary test_all_types test_vector_types truncate_duckdb_logs unnest which_secret
"""

_SESSION = """
current_catalog current_connection_id current_database current_query current_query_id current_role
current_schema current_schemas current_setting current_transaction_id current_user currval format_type
get_block_size getenv getvariable in_search_path inet_client_addr inet_client_port inet_server_addr
inet_server_port nextval parse_duckdb_log_message pg_conf_load_time pg_get_constraintdef pg_get_viewdef
pg_postmaster_start_time pg_sleep session_user setseed setval sleep_ms stats txid_current user version
write_log
"""

REFUSED: dict[str, str] = {
    **dict.fromkeys(_AGGREGATES.split(), "an aggregate or window function: only the row itself can be asked"),
    **dict.fromkeys(_ROWS.split(), "a table function: use one that returns a single value or a list"),
    **dict.fromkeys(
        _SESSION.split(), "a function of the session: only the row itself can be asked, so write the value"
    ),
}
"""By name in lower case: what it is, and what to do instead."""

BARE = frozenset(
    {"current_catalog", "current_role", "current_schema", "current_user", "session_user", "user"}
)
"""Those of the session that are called without parentheses too."""
