-- What an upgrade begins with, and how it ends.

-- name: setting
SELECT value FROM ducklake_metadata WHERE key = $key AND scope IS NULL;

-- name: store_version
UPDATE ducklake_metadata SET value = $version WHERE key = 'version' AND scope IS NULL;

-- name: forget_maker
DELETE FROM ducklake_metadata WHERE key = $key AND scope IS NULL;

-- name: store_maker
INSERT INTO ducklake_metadata (key, value) VALUES ($key, $version);
