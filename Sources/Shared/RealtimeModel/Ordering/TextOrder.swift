// The order and equality of text in the protocol: by UTF-16 code units. Swift's String operators use canonical
// equivalence instead. The comparison runs on UTF-8, whose byte order differs from UTF-16 order only between the
// supplementary planes and U+E000...U+FFFF.

/// Comparisons of text by UTF-16 code units.
public enum TextOrder {
  /// Compares by UTF-16 code units: negative, zero or positive.
  public static func compare(_ a: String, _ b: String) -> Int {
    let fast = a.utf8.withContiguousStorageIfAvailable { left in
      b.utf8.withContiguousStorageIfAvailable { right in compare(left, right) }
    }
    if case .some(.some(let order)) = fast { return order }
    var right = b.utf16.makeIterator()
    for unit in a.utf16 {
      guard let other = right.next() else { return 1 }
      if unit != other { return unit < other ? -1 : 1 }
    }
    return right.next() == nil ? 0 : -1
  }

  /// Whether two texts have the same code units.
  public static func equal(_ a: String, _ b: String) -> Bool {
    let fast = a.utf8.withContiguousStorageIfAvailable { left in
      b.utf8.withContiguousStorageIfAvailable { right in
        left.count == right.count && left.elementsEqual(right)
      }
    }
    if case .some(.some(let same)) = fast { return same }
    return a.utf8.elementsEqual(b.utf8)
  }

  /// Feeds the code units of a text to a hasher.
  static func hash(_ text: String, into hasher: inout Hasher) {
    let done: Void? = text.utf8.withContiguousStorageIfAvailable { bytes in
      hasher.combine(bytes: UnsafeRawBufferPointer(bytes))
    }
    if done == nil { for byte in text.utf8 { hasher.combine(byte) } }
    hasher.combine(UInt8(0xFF))
  }

  private static func compare(_ a: UnsafeBufferPointer<UInt8>, _ b: UnsafeBufferPointer<UInt8>) -> Int {
    let count = min(a.count, b.count)
    var i = 0
    while i < count {
      let x = a[i]
      let y = b[i]
      if x != y {
        // In UTF-16 order, U+E000...U+FFFF (lead bytes 0xEE, 0xEF) sort after the surrogates of 0xF0...0xF4.
        if x >= 0xEE, y >= 0xEE, (x >= 0xF0) != (y >= 0xF0) { return x >= 0xF0 ? -1 : 1 }
        return x < y ? -1 : 1
      }
      i += 1
    }
    return a.count - b.count
  }
}

/// A type with a three-way comparison.
protocol TotallyOrdered: Sendable {
  /// Negative if this value sorts before the other, zero if they are equal, positive otherwise.
  func order(against other: Self) -> Int
}
