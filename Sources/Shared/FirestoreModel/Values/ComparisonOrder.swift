// The result of a three-way comparison, and the bytewise comparison on which the order of text and bytes is based.
//
// Invariant: text compares by its UTF-8 bytes, which is code point order. Swift's `<` and `==` on `String` use
// canonical equivalence, under which two spellings of "é" are equal. The databases distinguish them.

/// The result of comparing two things in a total order.
public enum ComparisonOrder: Int8, Sendable, Hashable {
  /// The first sorts before the second.
  case ascending = -1
  /// Neither sorts before the other.
  case same = 0
  /// The first sorts after the second.
  case descending = 1

  /// The result with the two sides exchanged.
  public var reversed: ComparisonOrder {
    switch self {
    case .ascending: .descending
    case .same: .same
    case .descending: .ascending
    }
  }

  /// Compares two values of a comparable type.
  @inlinable
  public static func compare<T: Comparable>(_ a: T, _ b: T) -> ComparisonOrder {
    a < b ? .ascending : (a > b ? .descending : .same)
  }

  /// Compares two byte arrays as unsigned bytes; a prefix sorts first.
  public static func compare(bytes a: [UInt8], _ b: [UInt8]) -> ComparisonOrder {
    a.withUnsafeBytes { a in b.withUnsafeBytes { b in compare(a, b) } }
  }

  /// Compares two texts by their UTF-8 bytes.
  public static func compare(utf8 a: String, _ b: String) -> ComparisonOrder {
    let fast = a.utf8.withContiguousStorageIfAvailable { a in
      b.utf8.withContiguousStorageIfAvailable { b in
        compare(UnsafeRawBufferPointer(a), UnsafeRawBufferPointer(b))
      }
    }
    if case .some(.some(let ordering)) = fast { return ordering }
    return compare(bytes: Array(a.utf8), Array(b.utf8))
  }

  /// Compares two spans of memory as unsigned bytes, a word at a time.
  static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> ComparisonOrder {
    let count = a.count < b.count ? a.count : b.count
    var i = 0
    while i &+ 8 <= count {
      let x = a.loadUnaligned(fromByteOffset: i, as: UInt64.self)
      let y = b.loadUnaligned(fromByteOffset: i, as: UInt64.self)
      if x != y { return x.bigEndian < y.bigEndian ? .ascending : .descending }
      i &+= 8
    }
    while i < count {
      if a[i] != b[i] { return a[i] < b[i] ? .ascending : .descending }
      i &+= 1
    }
    return compare(a.count, b.count)
  }
}

extension String {
  /// Makes a string of bytes; nil if they are not valid UTF-8.
  public init?(strictUTF8 bytes: UnsafeRawBufferPointer) {
    // Decoding replaces invalid bytes, so only valid input decodes to the same bytes.
    let text = String(decoding: bytes, as: UTF8.self)
    let isUnchanged = text.utf8.withContiguousStorageIfAvailable {
      ComparisonOrder.compare(UnsafeRawBufferPointer($0), bytes) == .same
    }
    guard isUnchanged ?? text.utf8.elementsEqual(bytes) else { return nil }
    self = text
  }

  /// Whether both texts have the same UTF-8 bytes. Unlike `==`, two spellings of "é" are different.
  public func hasSameUTF8(as other: String) -> Bool {
    utf8.count == other.utf8.count && ComparisonOrder.compare(utf8: self, other) == .same
  }

  /// Whether this text sorts before another by UTF-8 bytes.
  public func precedesInUTF8(_ other: String) -> Bool {
    ComparisonOrder.compare(utf8: self, other) == .ascending
  }

  /// Feeds the UTF-8 bytes and an end marker to a hasher, so that hashing agrees with `hasSameUTF8(as:)`.
  func hashUTF8(into hasher: inout Hasher) {
    let done: Void? = utf8.withContiguousStorageIfAvailable {
      hasher.combine(bytes: UnsafeRawBufferPointer($0))
    }
    if done == nil { for byte in utf8 { hasher.combine(byte) } }
    hasher.combine(0xFF as UInt8)
  }
}
