// A child key: the name of a child. Keys that spell 32-bit integers sort first, in numeric order; all others follow in
// UTF-16 order.
//
// Invariant: equality and hashing use exact code units. "é" as one scalar and as two are different keys, although
// Swift's String operators treat them as equal.

/// The key of a child.
public struct ChildKey: Sendable, Hashable, Comparable, CustomStringConvertible, ExpressibleByStringLiteral {
  /// The key's text.
  public let text: String
  let integer: Int32
  let rank: Rank

  enum Rank: UInt8, Sendable {
    case minimum = 0
    case integer
    case text
    case maximum
  }

  /// Wraps a string without validating it. The name of a sentinel gives an ordinary key; only ``init(bound:)`` gives
  /// sentinels.
  public init(_ text: String) {
    var native = text
    native.makeContiguousUTF8()
    self.text = native
    if let value = ChildKey.integer(of: native) {
      integer = value
      rank = .integer
    } else {
      integer = 0
      rank = .text
    }
  }

  /// Wraps the key of a query bound from the wire. The names of the sentinels mean ``minimum`` and ``maximum``. Java
  /// clients write ``maximum`` as `[MAX_KEY]`.
  public init(bound text: String) {
    switch text {
    case "[MIN_NAME]": self = .minimum
    case "[MAX_NAME]", "[MAX_KEY]": self = .maximum
    default: self.init(text)
    }
  }

  /// Validates a key: not empty, within `limits`, without `.$#[]/` and control characters.
  ///
  /// - Throws: ``RealtimeError`` with status `failure`.
  public init(validating text: String, limits: RealtimeLimits = .standard) throws(RealtimeError) {
    guard text.utf8.count <= limits.keyBytes else {
      throw .invalidData("key path longer than \(limits.keyBytes) bytes")
    }
    guard ChildKey.isValid(text) else {
      throw .invalidData("couldn't parse key. Key value can't be empty or contain $ # [ ] / or .")
    }
    self.init(text)
  }

  /// Wraps a literal without validating it.
  public init(stringLiteral text: String) { self.init(text) }

  private init(sentinel text: String, rank: Rank) {
    self.text = text
    self.integer = 0
    self.rank = rank
  }

  /// A sentinel that sorts before every key.
  public static let minimum = ChildKey(sentinel: "[MIN_NAME]", rank: .minimum)
  /// A sentinel that sorts after every key.
  public static let maximum = ChildKey(sentinel: "[MAX_NAME]", rank: .maximum)
  /// The pseudo child that addresses a location's priority.
  public static let priority = ChildKey(".priority")

  /// Whether this is the pseudo child `.priority`.
  public var isPriority: Bool { rank == .text && text.utf8.count == 9 && text == ".priority" }

  /// Whether a string consists of characters that a key may have; the length is not checked.
  public static func isValid(_ text: String) -> Bool {
    guard !text.isEmpty else { return false }
    for byte in text.utf8 {
      switch byte {
      case 0...0x1F, 0x7F, UInt8(ascii: "."), UInt8(ascii: "$"), UInt8(ascii: "#"), UInt8(ascii: "["),
        UInt8(ascii: "]"), UInt8(ascii: "/"):
        return false
      default: break
      }
    }
    return true
  }

  /// The value of a string that spells a 32-bit integer: an optional minus, zeros, then at most ten digits.
  static func integer(of text: String) -> Int32? {
    var value: Int64 = 0
    var digits = 0
    var any = false
    var negative = false
    for (position, byte) in text.utf8.enumerated() {
      if byte == UInt8(ascii: "-") {
        guard position == 0 else { return nil }
        negative = true
        continue
      }
      guard byte >= 48, byte <= 57 else { return nil }
      any = true
      if digits > 0 || byte != 48 { digits += 1 }
      guard digits <= 10 else { return nil }
      value = value * 10 + Int64(byte - 48)
    }
    return any ? Int32(exactly: negative ? -value : value) : nil
  }

  /// The array index this key spells: digits without leading zeros; nil for any other key.
  public var arrayIndex: Int? {
    guard rank == .integer, integer >= 0 else { return nil }
    let count = text.utf8.count
    guard count == 1 || text.utf8.first != 48, text.utf8.first != UInt8(ascii: "-") else { return nil }
    return Int(integer)
  }

  /// The number of an integer key; nil for any other key.
  public var integerValue: Int32? { rank == .integer ? integer : nil }

  /// Whether two keys have the same code units.
  public static func == (a: ChildKey, b: ChildKey) -> Bool {
    a.rank == b.rank && a.integer == b.integer && TextOrder.equal(a.text, b.text)
  }

  /// Hashes the code units.
  public func hash(into hasher: inout Hasher) { TextOrder.hash(text, into: &hasher) }

  /// The order of keys.
  public static func < (a: ChildKey, b: ChildKey) -> Bool { a.order(against: b) < 0 }

  /// The key's text.
  public var description: String { text }
}

extension ChildKey: TotallyOrdered {
  func order(against other: ChildKey) -> Int {
    if rank != other.rank { return rank.rawValue < other.rank.rawValue ? -1 : 1 }
    switch rank {
    case .minimum, .maximum: return 0
    case .integer:
      if integer != other.integer { return integer < other.integer ? -1 : 1 }
      let difference = text.utf8.count - other.text.utf8.count
      return difference != 0 ? difference : TextOrder.compare(text, other.text)
    case .text: return TextOrder.compare(text, other.text)
    }
  }
}
