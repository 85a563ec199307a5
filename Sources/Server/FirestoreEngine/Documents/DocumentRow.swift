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
    var rest = message[position..<position + length]
    func skip(_ text: String) -> Bool {
      var text = text
      return text.withUTF8 { bytes in
        guard rest.count >= bytes.count, rest.prefix(bytes.count).elementsEqual(bytes) else { return false }
        rest = rest.dropFirst(bytes.count)
        return true
      }
    }
    guard skip("projects/"), skip(name.database.project), skip("/databases/"), skip(name.database.database),
      skip("/documents")
    else { return false }
    for segment in name.path.segments { guard skip("/"), skip(segment) else { return false } }
    return rest.isEmpty
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
}
