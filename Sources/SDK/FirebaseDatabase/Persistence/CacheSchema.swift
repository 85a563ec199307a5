// The schema of the cache file, and the migrations that create it.
//
// Invariant: `PRAGMA user_version` is the number of migrations that ran, and `PRAGMA application_id` marks the file as
// a cache of this SDK. A migration never changes after its release.

import GRDB

/// The tables of the cache file.
enum CacheSchema {
  /// One step from a version to the next.
  typealias Migration = @Sendable (GRDB.Database) throws -> Void

  /// The mark of the SDK's cache files: "Hrdb".
  static let applicationID = 0x4872_6462

  /// All migrations, in their order.
  static let migrations: [Migration] = [version1, version2]

  private static let version1: Migration = { db in
    try db.execute(
      sql: """
        CREATE TABLE pending_writes (
          id INTEGER PRIMARY KEY,
          kind INTEGER NOT NULL,
          path BLOB NOT NULL,
          value BLOB NOT NULL
        );
        CREATE TABLE server_values (
          path BLOB PRIMARY KEY,
          value BLOB NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE tracked_queries (
          id INTEGER PRIMARY KEY,
          path BLOB NOT NULL,
          query BLOB NOT NULL,
          last_use INTEGER NOT NULL,
          is_active INTEGER NOT NULL,
          is_complete INTEGER NOT NULL,
          UNIQUE (path, query)
        );
        CREATE INDEX tracked_queries_by_use ON tracked_queries (is_active, last_use, id);
        CREATE INDEX tracked_queries_incomplete ON tracked_queries (path) WHERE is_complete = 0;
        CREATE TABLE tracked_keys (
          query INTEGER NOT NULL,
          key BLOB NOT NULL,
          PRIMARY KEY (query, key)
        ) WITHOUT ROWID;
        """)
  }

  /// Marks all filtered queries as incomplete, and adds an index of complete windows. Earlier versions marked
  /// filtered queries as complete together with the default queries above them, but without the keys of their
  /// windows.
  private static let version2: Migration = { db in
    try db.execute(
      sql: """
        UPDATE tracked_queries SET is_complete = 0 WHERE query <> x'7B7D';
        CREATE INDEX tracked_windows ON tracked_queries (path) WHERE is_complete = 1 AND query <> x'7B7D';
        """)
  }

  /// Checks the application ID and version of a file, and migrates it to the latest version.
  ///
  /// - Throws: `CacheFailure.damaged` for a file of another program or of a later version.
  static func prepare(_ db: GRDB.Database, migrations: [Migration]) throws {
    let fileApplicationID = try Int.fetchOne(db, sql: "PRAGMA application_id") ?? 0
    let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
    let tables = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") ?? 0
    if tables == 0, fileApplicationID == 0, version == 0 {
      try db.execute(sql: "PRAGMA application_id = \(applicationID)")
    } else if fileApplicationID != applicationID {
      throw CacheFailure.damaged("another program wrote it")
    }
    guard version <= migrations.count, version >= 0 else {
      throw CacheFailure.damaged("its version \(version) is later than \(migrations.count)")
    }
    for next in version..<migrations.count {
      try db.inTransaction(.immediate) {
        try migrations[next](db)
        try db.execute(sql: "PRAGMA user_version = \(next + 1)")
        return .commit
      }
    }
  }
}
