// The schema of the cache file: its tables and their versions.
//
// Names are blobs of UTF-8, because SQLite's text ends at a zero byte. Times are twelve bytes that sort in
// the order of time.
//
// Invariant: released migrations never change; new ones are appended. The first n migrations were applied to
// a file of version n, and `user_version` is n.

import GRDB

/// Creates the tables and migrates files of earlier versions.
enum DiskSchema {
  /// The migrations from each version to the next. The first one creates the tables of an empty file.
  static let migrations: [String] = [
    """
    CREATE TABLE counters (name TEXT PRIMARY KEY, value) WITHOUT ROWID;

    -- Collections are numbered once, because every row of a document names one.
    CREATE TABLE collections (number INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, id BLOB NOT NULL);
    CREATE INDEX collections_by_id ON collections (id);

    CREATE TABLE documents (
      number INTEGER PRIMARY KEY, collection INTEGER NOT NULL, id BLOB NOT NULL, kind INTEGER NOT NULL,
      committed INTEGER NOT NULL, version BLOB NOT NULL, created BLOB NOT NULL, read BLOB NOT NULL,
      used INTEGER NOT NULL, fields BLOB NOT NULL, UNIQUE (collection, id));
    CREATE INDEX documents_by_read_time ON documents (collection, read);

    CREATE TABLE batches (
      number INTEGER PRIMARY KEY, user BLOB NOT NULL, time BLOB NOT NULL, base BLOB NOT NULL, writes BLOB NOT NULL);
    CREATE INDEX batches_by_user ON batches (user, number);
    CREATE TABLE batch_documents (
      user BLOB NOT NULL, collection INTEGER NOT NULL, id BLOB NOT NULL, batch INTEGER NOT NULL,
      PRIMARY KEY (user, collection, id, batch)) WITHOUT ROWID;
    CREATE INDEX batch_documents_by_name ON batch_documents (collection, id);
    CREATE TABLE overlays (
      user BLOB NOT NULL, collection INTEGER NOT NULL, id BLOB NOT NULL, batch INTEGER NOT NULL,
      body BLOB NOT NULL, PRIMARY KEY (user, collection, id)) WITHOUT ROWID;

    CREATE TABLE targets (
      number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, sequence INTEGER NOT NULL, version BLOB NOT NULL,
      in_sync BLOB NOT NULL, token BLOB NOT NULL);
    CREATE TABLE target_documents (
      target INTEGER NOT NULL, collection INTEGER NOT NULL, id BLOB NOT NULL,
      PRIMARY KEY (target, collection, id)) WITHOUT ROWID;
    CREATE INDEX target_documents_by_name ON target_documents (collection, id);

    CREATE TABLE field_indexes (number INTEGER PRIMARY KEY, definition TEXT NOT NULL UNIQUE);
    CREATE TABLE index_entries (
      field_index INTEGER NOT NULL, collection INTEGER NOT NULL, key BLOB NOT NULL, name BLOB NOT NULL,
      document INTEGER NOT NULL, PRIMARY KEY (field_index, collection, key, name)) WITHOUT ROWID;

    CREATE TABLE bundles (id BLOB PRIMARY KEY, version INTEGER NOT NULL, created BLOB NOT NULL,
      documents INTEGER NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE named_queries (name BLOB PRIMARY KEY, parent TEXT NOT NULL, query BLOB NOT NULL,
      limit_to_last INTEGER NOT NULL, read BLOB NOT NULL) WITHOUT ROWID;
    """
  ]

  /// The error for a file with a version that this code does not know.
  struct UnknownVersion: Error, CustomStringConvertible {
    let version: Int
    var description: String { "the file has version \(version) of the tables, which is unknown" }
  }

  /// Applies the missing migrations in one transaction.
  static func migrate(_ db: Database) throws {
    let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
    guard version <= migrations.count, version >= 0 else { throw UnknownVersion(version: version) }
    guard version < migrations.count else { return }
    try db.inTransaction {
      for migration in migrations[version...] { try db.execute(sql: migration) }
      try db.execute(sql: "PRAGMA user_version = \(migrations.count)")
      return .commit
    }
  }
}
