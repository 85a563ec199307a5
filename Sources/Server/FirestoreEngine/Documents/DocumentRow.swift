// The row of a document: its times, then its `google.firestore.v1.Document` message.
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
    return row
  }

  /// The document in a row.
  /// - Throws: DATA_LOSS if the bytes are not a row of this format, or of another document.
  static func decode(_ row: UnsafeRawBufferPointer, _ name: DocumentName) throws(FirestoreError)
    -> StoredDocument
  {
    guard row.count >= headerSize, row[0] == format else {
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
