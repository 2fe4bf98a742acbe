-- What the queries of sql_corpus.sql are about.
CREATE SCHEMA sales;
CREATE TABLE sales.orders (
    id BIGINT, region VARCHAR, price DECIMAL(12, 2), weight DOUBLE, day DATE, ts TIMESTAMP, tags VARCHAR[],
    s STRUCT(a INTEGER, b VARCHAR), m MAP(VARCHAR, BIGINT), flag BOOLEAN
);
INSERT INTO sales.orders SELECT
    i, CASE i % 4 WHEN 0 THEN 'EU' WHEN 1 THEN 'US' WHEN 2 THEN 'a_b\%c' END, i * 1.25, i / 7, DATE '2024-01-01' + i::INTEGER,
    TIMESTAMP '2024-03-10 00:30:00' + INTERVAL (i) HOUR, ['t' || i, 'x'], {'a': i, 'b': 'b' || i},
    MAP {'k': i, 'l': i * 2}, i % 3 = 0
FROM range(20) r(i);
INSERT INTO sales.orders (id) VALUES (100);
CREATE TABLE people (id BIGINT, name VARCHAR, boss BIGINT);
INSERT INTO people VALUES (0, 'Ann', NULL), (1, 'Bob', 0), (2, 'Cy', 0), (3, NULL, 1);
CREATE VIEW sales.large AS SELECT id, price * 2 AS twice, count(*) OVER () FROM sales.orders WHERE price > 1;
CREATE VIEW named (who, what) AS SELECT p.name, l.twice FROM people p JOIN sales.large l USING (id);
