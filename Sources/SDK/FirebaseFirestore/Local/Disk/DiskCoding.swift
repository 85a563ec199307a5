// Converts between rows of the cache file and the client's types.
//
// Invariant: a row that cannot be read throws `DamagedRow`; it never stops the program.

import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import Foundation
import GRDB
import SwiftProtobuf

/// A row of the cache that cannot be read.
struct DamagedRow: Error, CustomStringConvertible {
  let description: String
}

extension Row {
  /// The value of a column. It throws for values for which GRDB's subscripts would trap.
  func at<T: DatabaseValueConvertible & StatementColumnConvertible>(_ index: Int) throws -> T {
    try decode(T.self, atIndex: index)
  }
}

extension ModelTimestamp {
  /// The time as a column.
  var column: Data { Data(sortedBytes) }

  init(column: Data) throws {
    guard let time = ModelTimestamp(sortedBytes: column) else {
      throw DamagedRow(description: "a time is damaged")
    }
    self = time
  }
}

extension String {
  /// The text as a column.
  var column: Data { Data(utf8) }

  init(column: Data) throws {
    guard let text = String(validating: column, as: UTF8.self) else {
      throw DamagedRow(description: "a name is damaged")
    }
    self = text
  }
}

extension ResourcePath {
  /// The path as a column.
  var column: Data { description.column }
}

/// A write that could not be decoded after it was encoded.
struct UnstorableWrite: Error, CustomStringConvertible {
  let description: String
}

/// Encodes the writes of a batch or an overlay as a column.
///
/// The names of their documents are not validated. A write to an invalid name is queued and shown until the
/// server rejects it.
enum WriteColumn {
  /// Encodes writes.
  ///
  /// - Throws: `UnstorableWrite` if a value refers to an invalid name.
  static func encode(_ writes: [Write]) throws -> Data {
    let column: Data = try Google_Firestore_V1_WriteRequest.with {
      $0.writes = writes.map { Google_Firestore_V1_Write($0) }
    }.serializedBytes()
    if let database = writes.first?.document.database {
      do { _ = try decode(column, in: database) } catch { throw UnstorableWrite(description: "\(error)") }
    }
    return column
  }

  static func decode(_ column: Data, in database: DatabaseName) throws -> [Write] {
    let messages = try Google_Firestore_V1_WriteRequest(serializedBytes: column).writes
    return try messages.map { try write($0, in: database) }
  }

  private static func write(_ message: Google_Firestore_V1_Write, in database: DatabaseName) throws -> Write {
    let root = ParentName(rootOf: database)
    let validName = root.collection("c").document("d").description
    var message = message
    let text: String
    switch message.operation {
    case .update(let document):
      text = document.name
      message.update.name = validName
    case .delete(let name):
      text = name
      message.delete = validName
    case .verify(let name):
      text = name
      message.verify = validName
    case .transform, nil: return try Write(message)
    }
    // Splits by bytes, because a combining character at the start of the path would form one character with
    // the preceding slash.
    let prefix = (root.description + "/").utf8
    let path = ResourcePath(splitting: String(Substring(text.utf8.dropFirst(prefix.count))))
    guard text.utf8.starts(with: prefix), let name = DocumentName(database: database, path: path) else {
      throw DamagedRow(description: "the name of a write is damaged")
    }
    var write = try Write(message)
    switch write.operation {
    case .update(_, let fields): write.operation = .update(name, fields: fields)
    case .delete: write.operation = .delete(name)
    case .verify: write.operation = .verify(name)
    case .transform: break
    }
    return write
  }
}

extension CachedDocument {
  /// The columns of a document, in the order in which `init(_:from:name:)` reads them.
  static let columnNames = "kind, committed, version, created, read, fields"

  /// The kind of the contents as a column; nil if nothing is known about the document.
  var kindColumn: Int? {
    switch contents {
    case .none: nil
    case .missing: 1
    case .found: 2
    case .unknown: 3
    }
  }

  /// Reads a document from the columns of a row. The first of these columns is at `start`.
  init(_ row: Row, from start: Int, name: DocumentName) throws {
    self.init(name: name)
    switch try row.at(start) as Int {
    case 1: contents = .missing
    case 2: contents = .found(try DocumentCodec.decodeFields([UInt8]((row.at(start + 5) as Data))))
    case 3: contents = .unknown
    default: throw DamagedRow(description: "a document has an unknown kind")
    }
    if try row.at(start + 1) as Bool { changes = .committed }
    version = try ModelTimestamp(column: row.at(start + 2))
    createTime = try ModelTimestamp(column: row.at(start + 3))
    readTime = try ModelTimestamp(column: row.at(start + 4))
  }
}

extension Target {
  /// The key of a target. Two targets are equal if and only if their keys are equal.
  func column() throws -> Data {
    switch self {
    case .document(let name): return Data([1]) + name.path.column
    case .query(let query):
      var options = BinaryEncodingOptions()
      options.useDeterministicOrdering = true
      let structured: Data = try Google_Firestore_V1_StructuredQuery(query.structured).serializedBytes(
        options: options)
      return Data([2]) + query.parent.path.column + Data([0]) + structured
    }
  }
}

extension FieldIndex {
  /// The definition as a column.
  var column: String {
    let parts = segments.map { ($0.kind == .value ? "=" : "@") + $0.field.description }
    let json = try? JSONEncoder().encode([collectionID] + parts)
    return String(decoding: json ?? Data(), as: UTF8.self)
  }

  init(column: String) throws {
    let parts = try JSONDecoder().decode([String].self, from: Data(column.utf8))
    let segments = try parts.dropFirst().map { part in
      Segment(
        field: try ModelFieldPath(parsing: String(part.dropFirst())),
        kind: part.hasPrefix("=") ? .value : .elements)
    }
    guard let id = parts.first, let index = FieldIndex(collectionID: id, segments: segments) else {
      throw DamagedRow(description: "an index is damaged")
    }
    self = index
  }
}
