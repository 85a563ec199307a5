// Runs cached statements with bytes and integers as arguments.

import Foundation
import GRDB

extension GRDB.Database {
  /// Runs a statement that returns no rows.
  func run(_ sql: String, _ arguments: (any DatabaseValueConvertible)...) throws {
    try cachedStatement(sql: sql).execute(arguments: StatementArguments(arguments))
  }

  /// Calls a closure for each row of a statement.
  func visit(
    _ sql: String, _ arguments: [any DatabaseValueConvertible], _ visit: (Row) throws -> Void
  ) throws {
    let rows = try Row.fetchCursor(cachedStatement(sql: sql), arguments: StatementArguments(arguments))
    while let row = try rows.next() { try visit(row) }
  }

  /// The first integer of the first row; nil without a row.
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

extension Row {
  /// The bytes in a column. GRDB's subscripts would trap if a damaged file has a value of another type.
  ///
  /// - Throws: `CacheFailure` if the column has no bytes.
  func bytes(_ column: Int) throws -> Data {
    guard let value = Data.fromDatabaseValue(self[column] as DatabaseValue) else {
      throw CacheFailure.damaged("a column has no bytes")
    }
    return value
  }

  /// The integer in a column.
  ///
  /// - Throws: `CacheFailure` if the column has no integer.
  func integer(_ column: Int) throws -> Int64 {
    guard let value = Int64.fromDatabaseValue(self[column] as DatabaseValue) else {
      throw CacheFailure.damaged("a column has no integer")
    }
    return value
  }
}

extension Array where Element == UInt8 {
  /// The bytes as an argument of a statement.
  var data: Data { Data(self) }
}
