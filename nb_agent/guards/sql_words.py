"""Names that `statements` goes by: functions that only compute, functions that reach out, and parts of a parse tree that write.

Only tables. The lists were put together from the function references of the servers; a name that is missing from the first one is
refused, so a gap costs comfort and not safety.
"""
# ruff: noqa: SIM905  lists of words read best as text

from __future__ import annotations

import re
from typing import Final

__all__ = ["FILE_FORMATS", "HARMLESS", "HARMLESS_CAMEL", "NEVER", "REACHING", "TABLE_FUNCTIONS", "TABLE_HINTS", "TSQL_STATEMENTS"]

#: Classes of sqlglot: what writes, locks, changes the session, runs a program or a model, or hands on what was not understood.
NEVER: Final = frozenset(
    "Into Lock Hint QueryTransform Operator Returning Insert Update Delete Merge Copy Create Drop Alter AlterSession TruncateTable "
    "Command Execute ExecuteSql Set SetItem Use Kill Pragma Attach Detach Install Declare Transaction Commit Rollback Grant Revoke "
    "Analyze Cache Uncache Refresh LoadData Export Put Get ListStage Block IfBlock WhileBlock LoopBlock RepeatBlock Comment Undrop "
    "StoredProcedure MultitableInserts ConditionalInsert LockingStatement Directory DirectoryStage Show Describe Summarize "
    "NextValueFor ReadCSV ReadParquet Predict Secret ToFile DynamicIdentifier AIAgg AIClassify AIEmbed AIForecast AIGenerate "
    "AISimilarity AISummarizeAgg MLForecast MLTranslate GenerateBool GenerateDouble GenerateEmbedding GenerateInt GenerateTable "
    "GenerateText".split()
)
#: Its classes of functions that may stand as a table.
TABLE_FUNCTIONS: Final = frozenset(
    "Anonymous Unnest GenerateSeries ExplodingGenerateSeries GenerateDateArray Explode Posexplode Flatten Inline Stack "
    "ExplodeOuter JSONTable OpenJSON XMLTable SplitToTable StrtokSplitToTable Generator VectorSearch".split()
)
#: In T-SQL a statement may follow another with nothing between, so that these words, all of them reserved, would pass for names:
#: ``SELECT * FROM t SHUTDOWN``, ``SELECT * FROM t EXEC ('…')``. FETCH only moves a cursor, and is needed for paging.
TSQL_STATEMENTS: Final = frozenset(
    "ALTER BACKUP BEGIN BREAK BULK CHECKPOINT CLOSE COMMIT CONTINUE CREATE DBCC DEALLOCATE DECLARE DELETE DENY DROP DUMP EXEC "
    "EXECUTE EXIT GOTO GRANT IF INSERT KILL LOAD MERGE OPEN PRINT RAISERROR READTEXT RECONFIGURE RESTORE RETURN REVERT REVOKE "
    "ROLLBACK SAVE SET SETUSER SHUTDOWN TRUNCATE UPDATE UPDATETEXT USE WAITFOR WHILE WRITETEXT".split()
)
#: Hints of T-SQL that take no lock.
TABLE_HINTS: Final = frozenset("NOLOCK READUNCOMMITTED READCOMMITTED READPAST SNAPSHOT FORCESEEK FORCESCAN".split())
#: Spark reads ``csv.`x` `` as a file.
FILE_FORMATS: Final = frozenset("csv json parquet orc text avro delta binaryfile xml iceberg hudi".split())

#: Functions that reach files, programs, other servers or the session, or run text as SQL. They are asked for by name as well,
#: should a later sqlglot have a class for one.
REACHING: Final = re.compile(
    r"pg_(?:read|ls|stat_file|sleep|terminate|cancel|reload|rotate|logical|advisory|notify|switch|file|execute)\w*|lo_\w+|dblink\w*"
    r"|(?:query|table|cursor|schema|database)_to_xml\w*|load_?file|load_extension|readfile|writefile|edit|fts3_tokenizer|[xs]p_\w+"
    r"|open(?:rowset|query|datasource)|external_query|read_\w+|\w+_scan|\w+_query_table|sniff_csv|getenv|file|url|s3\w*|hdfs"
    r"|remote\w*|mysql|postgresql|mongodb|jdbc|odbc|sqlite|executable|system\W?\w*|reflect|java_method|http\w*|sys_(?:exec|eval)"
    r"|sleep|benchmark|(?:get|release)_lock|set_config|setval|nextval|utl_\w+|dbms_\w+|\w*file_(?:read|write|exists)\w*|query|query_table",
    re.IGNORECASE,
)

_JSON: Final = (
    "agg array object array_elements array_elements_text array_length build_array build_object each each_text extract extract_path "
    "extract_path_text object_agg object_keys path_exists path_query path_query_array path_query_first path_match populate_record "
    "populate_recordset pretty set insert strip_nulls to_record to_recordset typeof type valid value query keys contains unquote "
    "quote length depth overlaps search tree group_array group_object remove replace patch modify merge_patch merge_preserve "
    "array_append array_insert transform"
)
_LISTS: Final = (
    "agg append avg cat concat contains count dims distinct element except extract fill filter flatten has has_all has_any indexof "
    "intersect join length lower max min ndims position positions prepend remove replace reverse shuffle size slice sort sum "
    "to_json to_string transform union unique upper value zip"
)
_TIMES: Final = "add sub diff part trunc bin bucket format parse seconds millis micros"
#: First part of a name -> the rests that make one.
_FAMILIES: Final = {
    "json_": _JSON,
    "jsonb_": _JSON,
    "array_": _LISTS,
    "list_": _LISTS,
    "map_": "agg concat contains entries extract filter from_arrays from_entries keys values zip_with",
    "object_": "construct construct_keep_null delete keys insert agg pick name id",
    "regexp_": "contains count extract extract_all full_match instr like match matches replace split split_to_array split_to_table "
    "substr substring",
    "date_": _TIMES,
    "datetime_": _TIMES,
    "time_": _TIMES + " to_sec",
    "timestamp_": _TIMES,
    "make_": "date time timestamp timestamptz interval",
    "format_": "date datetime time timestamp type number",
    "parse_": "date datetime time timestamp ident json",
    "str_to_": "date time map",
    "to_": "char number json jsonb hex ascii base64 varchar decimal numeric double boolean variant array object days seconds date "
    "time timestamp timestamp_ntz timestamp_ltz timestamp_tz json_string unixtime milliseconds tsvector tsquery",
    "try_to_": "char number date time timestamp decimal numeric double boolean",
    "is_": "array boolean integer null_value object varchar date decimal double timestamp nan inf finite infinite",
    "bit_": "and or xor count length reverse",
    "approx_": "count_distinct distinct percentile quantile quantiles top_count top_k median most_frequent",
    "percentile_": "cont disc approx",
    "quantile_": "cont disc",
    "covar_": "pop samp",
    "generate_": "array series subscripts date_array timestamp_array",
    "unix_": "timestamp date seconds millis micros",
    "utc_": "date time timestamp",
    "current_": "date time timestamp user role schema schemas database catalog version",
    "justify_": "days hours interval",
    "enum_": "first last range",
    "ts_": "headline rank rank_cd",
    "pg_": "size_pretty relation_size total_relation_size table_size get_viewdef get_indexdef get_constraintdef typeof",
    "sqlite_": "version source_id",
}
_PLAIN: Final = """
ntile nullif ifnull nvl nvl2 if iff iif isnull zeroifnull nullifzero coalesce greatest least choose decode div0 div0null count sum
avg min max any every any_value bool_and bool_or string_agg group_concat listagg xmlagg total mode range_agg median histogram
entropy kurtosis skewness stdev stdevp var varp corr grouping cume_dist ratio_to_report first last nth_value hash checksum hashbytes
abs acos acosd asin asind atan atand atan2 atan2d atn2 cbrt ceil ceiling cos cosd cot cotd degrees div exp factorial floor gcd lcm
ln log log10 log2 log1p min_scale mod modulo pi pmod pow power radians rand random round scale sign sin sind sqrt square tan tand
trim_scale trunc truncate uniform width_bucket crc32 md5 sha sha1 sha2 sha224 sha256 sha384 sha512 xxhash64
ascii bin btrim char charindex char_length character_length chr concat concat_ws conv contains datalength difference editdistance
elt empty notempty ends_with endswith field find_in_set format formatmessage from_base64 hex initcap insert instr jaccard
jaro_winkler_similarity jarowinkler_similarity lcase left len length levenshtein locate lower lpad ltrim mid nchar normalize oct
octet_length ord overlay parsename patindex position printf quote quote_ident quote_literal quote_nullable quotename repeat replace
replicate reverse right rpad rtrim similarity soundex space split split_part starts_with startswith str strcmp string_split
string_to_array string_to_table strip_accents strpos stuff substr substring substring_index translate trim typeof ucase unaccent
unhex unicode unistr upper word_similarity zeroblob encode get_byte
add_months addtime adddate subdate subtime age clock_timestamp convert_tz curdate curtime datediff datediff_big dateadd datename
datepart datetrunc datefromparts datetimefromparts datetimeoffsetfromparts date datetime day dayname dayofmonth dayofweek dayofyear
eomonth epoch epoch_ms extract from_days from_unixtime getdate getutcdate hour interval isdate julianday last_day localtime
localtimestamp makedate maketime microsecond minute month monthname months_between next_day now period_add period_diff quarter
sec_to_time second statement_timestamp strftime strptime switchoffset sysdate sysdatetime sysutcdatetime time timediff timeofday
timestamp timestampadd timestampdiff today todatetimeoffset transaction_timestamp unixepoch week weekday weekofyear year yearweek
yesterday
cardinality col_description flatten explode isempty isfinite lower_inc upper_inc num_nulls num_nonnulls obj_description range row
row_to_json struct struct_pack struct_extract unnest table values numbers get get_path isjson isnumeric newid uuid uuid_string
gen_random_uuid seq1 seq2 seq4 seq8 phraseto_tsquery plainto_tsquery websearch_to_tsquery highlight snippet bm25 user database
schema role version db_name schema_name type_name col_name connection_id inet_aton inet_ntoa inet6_aton inet6_ntoa family host
masklen network netmask
"""
#: Names of functions that only compute from what they are given, or tell the user, the version and the like; in small letters.
HARMLESS: Final = frozenset(_PLAIN.split()) | {start + rest for start, rests in _FAMILIES.items() for rest in rests.split()}
#: ClickHouse builds its names from parts.
HARMLESS_CAMEL: Final = re.compile(
    r"(?:count|sum|avg|min|max|any|uniq|argMin|argMax|quantiles?|median|group(?:Uniq)?Array)(?:Exact|Combined|Distinct|Last|TDigest)?"
    r"(?:If)?"
    r"|to(?:U?Int|Float|Decimal|Date|DateTime|String|UUID)\d*(?:OrNull|OrZero)?"
    r"|to(?:StartOf|YYYY|Day|Month|Year|Hour|Minute|Week)\w{0,16}"
    r"|array(?:Join|Map|Filter|Sort|Distinct|Sum|Count|Concat)|dateDiff|formatDateTime|multiIf|notEmpty|splitBy(?:Char|String)"
)
