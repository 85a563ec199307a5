// The bundle reader: splits a bundle's bytes into elements. An element is its length in decimal digits,
// followed by that many bytes of JSON. There are no separators. The bytes may arrive in chunks of any size.
//
// Invariant: the reader buffers at most the current element and the last chunk.

import FirestoreModel

struct BundleReader {
  /// The maximum number of bytes of an element. Every document fits: it has at most 1 MiB, and its JSON has
  /// at most six times as many bytes.
  static let elementLimit = 64 << 20
  static let prefixLimit = 10

  private var buffer: [UInt8] = []
  private var position = 0

  /// Appends the next bytes.
  mutating func append(_ bytes: some Sequence<UInt8>) {
    buffer.removeSubrange(..<position)
    position = 0
    buffer.append(contentsOf: bytes)
  }

  /// The next element's JSON, and its size including the length prefix; nil until more bytes arrive.
  mutating func next() throws(FirestoreError) -> (json: [UInt8], size: Int)? {
    var index = position
    var length = 0
    while index < buffer.count, buffer[index] != UInt8(ascii: "{") {
      let isDigit = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(buffer[index])
      guard isDigit, index - position < BundleReader.prefixLimit else {
        throw .damagedBundle(
          "The bundle is damaged: an element does not begin with a length of at most"
            + " \(BundleReader.prefixLimit) digits.")
      }
      length = length * 10 + Int(buffer[index] - UInt8(ascii: "0"))
      index += 1
    }
    guard index < buffer.count else { return nil }
    guard index > position else {
      throw .damagedBundle("The bundle is damaged: an element begins without its length.")
    }
    guard length <= BundleReader.elementLimit else {
      throw .damagedBundle(
        "The bundle is damaged: an element has \(length) bytes, more than the maximum of"
          + " \(BundleReader.elementLimit).")
    }
    guard buffer.count - index >= length else { return nil }
    let end = index + length
    defer { position = end }
    return (Array(buffer[index..<end]), end - position)
  }

  /// Checks that the bytes end at the end of an element.
  func finish() throws(FirestoreError) {
    if position < buffer.count {
      throw .damagedBundle(
        "The bundle is damaged: it ends \(buffer.count - position) bytes into an element.")
    }
  }
}
