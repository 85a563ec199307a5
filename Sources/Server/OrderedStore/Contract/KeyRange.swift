/// A half-open range of keys: `start <= key < end`.
public struct KeyRange: Hashable, Sendable {
  /// The first key in the range.
  public var start: Key
  /// The first key after the range; nil for no upper bound.
  public var end: Key?

  /// Makes a half-open range.
  public init(start: Key, end: Key?) {
    self.start = start
    self.end = end
  }

  /// Makes the range of every key that begins with `prefix`.
  public init(prefix: Key) {
    self.start = prefix
    self.end = KeyRange.successor(ofPrefix: prefix)
  }

  /// The least key above every key that begins with `prefix`; nil if all bytes of `prefix` are 255.
  public static func successor(ofPrefix prefix: Key) -> Key? {
    var end = prefix
    while let last = end.last {
      if last < 255 {
        end[end.count - 1] = last + 1
        return end
      }
      end.removeLast()
    }
    return nil
  }

  /// Whether the range contains a key.
  public func contains(_ key: Key) -> Bool {
    guard compareKeys(key, start) >= 0 else { return false }
    guard let end else { return true }
    return compareKeys(key, end) < 0
  }
}
