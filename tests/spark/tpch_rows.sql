-- Tables as those of TPC-H, small and with values that its queries ask for.
CREATE TABLE region AS
SELECT i::INTEGER AS r_regionkey, (['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'])[i + 1] AS r_name,
       'region ' || i AS r_comment
  FROM range(5) r(i);

CREATE TABLE nation AS
SELECT i::INTEGER AS n_nationkey, n_name, region::INTEGER AS n_regionkey, 'nation ' || i AS n_comment
  FROM (VALUES (0, 'KENYA', 0), (1, 'BRAZIL', 1), (2, 'CANADA', 1), (3, 'CHINA', 2), (4, 'JAPAN', 2),
               (5, 'FRANCE', 3), (6, 'GERMANY', 3), (7, 'SAUDI ARABIA', 4)) n(i, n_name, region);

CREATE TABLE supplier AS
SELECT i AS s_suppkey, 'Supplier#' || i AS s_name, 'street ' || i AS s_address, (i % 8)::INTEGER AS s_nationkey,
       '10-' || i AS s_phone, (i * 731.17 % 9999)::DECIMAL(15, 2) AS s_acctbal,
       CASE WHEN i % 9 = 0 THEN 'the Customer has Complaints' ELSE 'quick deposits' END AS s_comment
  FROM range(40) r(i);

CREATE TABLE customer AS
SELECT i AS c_custkey, 'Customer#' || i AS c_name, 'street ' || i AS c_address, (i // 3 % 8)::INTEGER AS c_nationkey,
       (['13', '31', '23', '29', '30', '18', '17', '99'])[i % 8 + 1] || '-555-' || i AS c_phone,
       (i * 317.13 % 9999 - 500)::DECIMAL(15, 2) AS c_acctbal,
       (['BUILDING', 'MACHINERY', 'FURNITURE'])[i % 3 + 1] AS c_mktsegment, 'comment ' || i AS c_comment
  FROM range(150) r(i);

CREATE TABLE part AS
SELECT i AS p_partkey, (['forest green', 'green', 'forest blue', 'red'])[i % 4 + 1] || ' part' AS p_name,
       'Manufacturer#' || i % 5 AS p_mfgr, (['Brand#12', 'Brand#23', 'Brand#34', 'Brand#45'])[i % 4 + 1] AS p_brand,
       (['ECONOMY ANODIZED STEEL', 'PROMO PLATED BRASS', 'LARGE BRUSHED BRASS', 'MEDIUM POLISHED TIN'])[i // 4 % 4 + 1]
           AS p_type,
       ([15, 49, 14, 3, 5, 1])[i % 6 + 1]::INTEGER AS p_size,
       (['SM CASE', 'MED BOX', 'LG PKG'])[i % 3 + 1] AS p_container,
       (900 + i)::DECIMAL(15, 2) AS p_retailprice, 'comment ' || i AS p_comment
  FROM range(160) r(i);

CREATE TABLE partsupp AS
SELECT p AS ps_partkey, (p * 7 + s * 10) % 40 AS ps_suppkey, (p * 31 + s * 57) % 900 AS ps_availqty,
       ((p * 13 + s * 29) % 1000 / 3)::DECIMAL(15, 2) AS ps_supplycost, 'comment' AS ps_comment
  FROM range(160) r(p), range(4) q(s);

CREATE TABLE orders AS
SELECT i AS o_orderkey, i * 7 % 149 AS o_custkey, (['F', 'O', 'F', 'P'])[i % 4 + 1] AS o_orderstatus,
       (i * 97.31 % 50000)::DECIMAL(15, 2) AS o_totalprice,
       (DATE '1992-01-01' + (i * 37 % 2400)::INTEGER)::DATE AS o_orderdate,
       (['1-URGENT', '2-HIGH', '3-MEDIUM', '5-LOW'])[i // 3 % 4 + 1] AS o_orderpriority, 'Clerk#' || i % 10 AS o_clerk,
       0::INTEGER AS o_shippriority,
       CASE WHEN i % 11 = 0 THEN 'special packed requests' ELSE 'plain' END AS o_comment
  FROM range(1500) r(i)
 WHERE i * 7 % 149 % 5 > 0;

CREATE TABLE lineitem AS
SELECT o_orderkey AS l_orderkey, part AS l_partkey, (part * 7 + n % 4 * 10) % 40 AS l_suppkey, n AS l_linenumber,
       quantity::DECIMAL(15, 2) AS l_quantity, (quantity * (900 + part) / 1.07)::DECIMAL(15, 2) AS l_extendedprice,
       ((o_orderkey + n) % 11 / 100)::DECIMAL(15, 2) AS l_discount, ((o_orderkey + n) % 9 / 100)::DECIMAL(15, 2) AS l_tax,
       (['R', 'A', 'N'])[(o_orderkey + n) % 3 + 1] AS l_returnflag, (['O', 'F'])[o_orderkey % 2 + 1] AS l_linestatus,
       shipped AS l_shipdate, (shipped + ((o_orderkey * 3 + n) % 20 + 6)::INTEGER)::DATE AS l_commitdate,
       (shipped + (1 + (o_orderkey + n * 5) % 25)::INTEGER)::DATE AS l_receiptdate,
       (['DELIVER IN PERSON', 'NONE'])[(o_orderkey + n) % 2 + 1] AS l_shipinstruct,
       (['AIR', 'MAIL', 'SHIP', 'AIR REG'])[(o_orderkey // 2 + n) % 4 + 1] AS l_shipmode, 'comment' AS l_comment
  FROM (SELECT *, (o_orderkey * 11 + n * 3) % 160 AS part, 1 + (o_orderkey * 17 + n * 13) % 50 + (o_orderkey % 97 // 96) * 60 AS quantity,
               (o_orderdate + (o_orderkey % 90 + n)::INTEGER)::DATE AS shipped
          FROM orders, range(1, 6) q(n));
