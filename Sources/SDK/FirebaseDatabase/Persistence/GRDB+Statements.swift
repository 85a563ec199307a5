// Runs cached statements with bytes and integers as arguments.

import Foundation
import GRDB

extension GRDB.Database {
  /// Runs a statement that returns no rows.
  func run(_ sql: String, _ arguments: (any DatabaseValueConvertible)...) throws {
    try cachedStatement(sql: sql).execute(arguments: StatementArguments(arguments))
  }

  /// Visits the rows of a statement.
  func visit(
    _ sql: String, _ arguments: [any DatabaseValueConvertible], _ visit: (Row) throws -> Void
  ) throws {
    let rows = try Row.fetchCursor(cachedStatement(sql: sql), arguments: StatementArguments(arguments))
    while let row = try rows.next() { try visit(row) }
  }

  /// The first row's first integer; nil without a row.
  func integer(_ sql: String, _ arguments: [any DatabaseValueConvertible] = []) throws -> Int64? {
    try Int64.fetchOne(cachedStatement(sql: sql), arguments: StatementArguments(arguments))
  }

  /// The number of bytes of the file in use. SQLite knows it without reading the file.
  func usedBytes() throws -> Int {
    let pages = try integer("PRAGMA page_count") ?? 0
    let free = try integer("PRAGMA freelist_count") ?? 0
    let size = try integer("PRAGMA page_size") ?? 0
    return Int((pages - free) * size)
  }
}

extension Array where Element == UInt8 {
  /// The bytes as an argument of a statement.
  var data: Data { Data(self) }
}
