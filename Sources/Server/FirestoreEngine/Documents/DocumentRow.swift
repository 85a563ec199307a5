// Encodes and decodes the row of a document: its times, then its `google.firestore.v1.Document` message.
//
//     01 | create time in µs (8, big endian) | update time in µs (8) | message
//
// The message includes the name, so that a read copies it into the response without decoding it.

import FirestoreModel
import FirestoreWire
import OrderedStore

/// Encodes and decodes document rows.
enum DocumentRow {
  static let format: UInt8 = 1
  static let headerSize = 17

  /// The row of a document.
  static func encode(_ document: StoredDocument) -> StoredValue {
    var row: StoredValue = []
    row.reserveCapacity(headerSize + document.encoded.count)
    row.append(format)
    append(document.createTime, to: &row)
    append(document.updateTime, to: &row)
    row.append(contentsOf: document.encoded)
    assert((try? decode(row, document.name)) != nil, "invariant: a document row decodes to its document")
    return row
  }

  /// The document in a row.
  /// - Throws: DATA_LOSS if the bytes are not a row of this format, or of another document.
  static func decode(_ row: UnsafeRawBufferPointer, _ name: DocumentName) throws(FirestoreError)
    -> StoredDocument
  {
    guard row.count >= headerSize, row[0] == format,
      hasName(name, UnsafeRawBufferPointer(rebasing: row[headerSize...]))
    else {
      throw FirestoreError(.dataLoss, "The stored document \(name) cannot be read.")
    }
    return StoredDocument(
      name: name, createTime: time(row, at: 1), updateTime: time(row, at: 9),
      encoded: Array(row[headerSize...]), decoded: nil)
  }

  /// The document in a row.
  /// - Throws: DATA_LOSS if the bytes are not a row of this format, or of another document.
  static func decode(_ row: StoredValue, _ name: DocumentName) throws(FirestoreError) -> StoredDocument {
    let result = row.withUnsafeBytes { bytes -> Result<StoredDocument, FirestoreError> in
      do throws(FirestoreError) { return .success(try decode(bytes, name)) } catch { return .failure(error) }
    }
    return try result.get()
  }

  /// The update time in a row, without decoding its document.
  /// - Throws: DATA_LOSS if the bytes are not a row of this format.
  static func updateTime(_ row: StoredValue, _ name: DocumentName) throws(FirestoreError) -> Timestamp {
    guard row.count >= headerSize, row[0] == format else {
      throw FirestoreError(.dataLoss, "The stored document \(name) cannot be read.")
    }
    return row.withUnsafeBytes { time($0, at: 9) }
  }

  /// Whether a `Document` message begins with a name.
  private static func hasName(_ name: DocumentName, _ message: UnsafeRawBufferPointer) -> Bool {
    // Field 1, length-delimited.
    guard message.count > 1, message[0] == 0x0A else { return false }
    var position = 1
    var length = 0
    var shift = 0
    while position < message.count, shift < 35 {
      let byte = message[position]
      position += 1
      length |= Int(byte & 0x7F) << shift
      shift += 7
      if byte & 0x80 == 0 { break }
    }
    guard message.count - position >= length else { return false }
    let end = position + length
    guard skip("projects/", in: message, at: &position, before: end),
      skip(name.database.project, in: message, at: &position, before: end),
      skip("/databases/", in: message, at: &position, before: end),
      skip(name.database.database, in: message, at: &position, before: end),
      skip("/documents", in: message, at: &position, before: end)
    else { return false }
    for segment in name.path.segments {
      guard skip("/", in: message, at: &position, before: end),
        skip(segment, in: message, at: &position, before: end)
      else { return false }
    }
    return position == end
  }

  /// Advances `position` over `text`. Returns false if the bytes at `position` are not `text`.
  @inline(__always)
  private static func skip(
    _ text: String, in message: UnsafeRawBufferPointer, at position: inout Int, before end: Int
  ) -> Bool {
    let start = position
    let isEqual = text.utf8.withContiguousStorageIfAvailable { expected in
      guard end - start >= expected.count else { return false }
      for offset in 0..<expected.count where message[start + offset] != expected[offset] { return false }
      return true
    }
    // A bridged string has no contiguous UTF-8.
    guard isEqual ?? message[start..<end].starts(with: text.utf8) else { return false }
    position = start + text.utf8.count
    return true
  }

  private static func append(_ time: Timestamp, to row: inout StoredValue) {
    withUnsafeBytes(of: time.microseconds.bigEndian) { row.append(contentsOf: $0) }
  }

  private static func time(_ row: UnsafeRawBufferPointer, at offset: Int) -> Timestamp {
    Timestamp(microseconds: Int64(bigEndian: row.loadUnaligned(fromByteOffset: offset, as: Int64.self)))
  }
}

extension ReadView {
  /// The document at a path; nil if it does not exist.
  func document(_ name: DocumentName) throws -> StoredDocument? {
    guard let row = try get(FirestoreKeyLayout.document(name.path)) else { return nil }
    return try DocumentRow.decode(row.value, name)
  }

  /// The update time of a document, without decoding the document; nil if the document does not exist.
  func updateTime(of name: DocumentName) throws -> Timestamp? {
    guard let row = try get(FirestoreKeyLayout.document(name.path)) else { return nil }
    return try DocumentRow.updateTime(row.value, name)
  }
}
