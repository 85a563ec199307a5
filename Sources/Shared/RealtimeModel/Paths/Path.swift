// A path: the keys from the root down to a location. On the wire, slashes join the keys. Empty segments are ignored,
// and keys are not percent-encoded.

/// The path of a location in a database, or relative to another location.
public struct Path: Sendable, Hashable, Comparable, CustomStringConvertible, ExpressibleByStringLiteral {
  /// The keys from the root down. Only the last may be ``ChildKey/priority``.
  public var keys: [ChildKey]

  /// Makes a path of keys.
  public init(keys: [ChildKey] = []) { self.keys = keys }

  /// Makes a path of keys.
  public init(_ keys: some Sequence<ChildKey>) { self.keys = Array(keys) }

  /// Splits a string at its slashes without validating the keys. Empty segments are dropped.
  public init(_ text: String) {
    keys = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: true)
      .map { ChildKey(String(Substring($0))) }
  }

  /// Splits a literal at its slashes without validating the keys.
  public init(stringLiteral text: String) { self.init(text) }

  /// Parses and validates a path.
  ///
  /// - Parameter allowingPriority: whether the last key may be `.priority`.
  /// - Throws: ``RealtimeError`` with status `failure` for an invalid key, or too many levels or bytes.
  public init(
    validating text: String, allowingPriority: Bool = false, limits: RealtimeLimits = .standard
  ) throws(RealtimeError) {
    self.init(text)
    for (position, key) in keys.enumerated() {
      if key.isPriority, allowingPriority, position == keys.count - 1 { continue }
      guard ChildKey.isValid(key.text) else { throw .invalidPath }
      guard key.text.utf8.count <= limits.keyBytes else {
        throw RealtimeError(.failure, "Invalid path: key longer than \(limits.keyBytes) bytes")
      }
    }
    guard dataDepth <= limits.depth else {
      throw RealtimeError(.failure, "Invalid path: more than \(limits.depth) levels deep")
    }
    guard fits(limits) else {
      throw RealtimeError(.failure, "Invalid path: longer than \(RealtimeLimits.pathBytes) bytes")
    }
  }

  /// The bytes of all keys, plus one for each; `.priority` does not count.
  public var keyBytes: Int { keys.reduce(0) { $0 + ($1.isPriority ? 0 : $1.text.utf8.count + 1) } }

  /// Whether the path is short enough for the key of a row in the store.
  public func fits(_ limits: RealtimeLimits) -> Bool {
    !limits.mayExceedPathBytes(keys.count) || keyBytes <= RealtimeLimits.pathBytes
  }

  /// The root, or the location itself for a relative path.
  public static let root = Path()

  /// Whether the path has no keys.
  public var isRoot: Bool { keys.isEmpty }
  /// The number of keys.
  public var count: Int { keys.count }
  /// The depth of the data; `.priority` does not count.
  public var dataDepth: Int { isPriority ? keys.count - 1 : keys.count }
  /// Whether the path addresses a location's priority.
  public var isPriority: Bool { keys.last?.isPriority ?? false }
  /// The first key; nil at the root.
  public var first: ChildKey? { keys.first }
  /// The last key; nil at the root.
  public var last: ChildKey? { keys.last }
  /// The path without its last key; nil at the root.
  public var parent: Path? { keys.isEmpty ? nil : Path(keys: Array(keys.dropLast())) }
  /// The path without its first key; the root stays the root.
  public var droppingFirst: Path { Path(keys: Array(keys.dropFirst())) }

  /// The location whose data or priority this path addresses.
  public var dataPath: Path { isPriority ? Path(keys: Array(keys.dropLast())) : self }

  /// The path of a child.
  public func child(_ key: ChildKey) -> Path { Path(keys: keys + [key]) }

  /// The path of a descendant.
  public func appending(_ path: Path) -> Path { Path(keys: keys + path.keys) }

  /// Whether the other path is this one or lies below it.
  public func contains(_ other: Path) -> Bool {
    guard other.keys.count >= keys.count else { return false }
    for i in keys.indices where keys[i] != other.keys[i] { return false }
    return true
  }

  /// This path relative to an ancestor; nil if `ancestor` does not contain it.
  public func relative(to ancestor: Path) -> Path? {
    ancestor.contains(self) ? Path(keys: Array(keys.dropFirst(ancestor.keys.count))) : nil
  }

  /// Keys joined by slashes, without a leading slash: the form of the server's pushes.
  public var description: String { keys.map(\.text).joined(separator: "/") }

  /// Keys joined by slashes after a leading slash: the form of a client's requests and of messages.
  public var absolute: String { "/" + description }

  /// Orders paths key by key. An ancestor precedes its descendants.
  public static func < (a: Path, b: Path) -> Bool { a.order(against: b) < 0 }
}

extension Path: TotallyOrdered {
  func order(against other: Path) -> Int {
    for (x, y) in zip(keys, other.keys) {
      let order = x.order(against: y)
      if order != 0 { return order }
    }
    return keys.count - other.keys.count
  }
}
