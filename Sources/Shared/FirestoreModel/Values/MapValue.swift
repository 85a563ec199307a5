// A map of field names to values: the contents of a document, or a value inside it.
//
// Invariant: entries are sorted by the UTF-8 bytes of their keys, and no key occurs twice. Therefore equality and order
// take one pass, and lookup is a binary search. Keys with different bytes differ, even where Swift's `String` treats
// them as equal.

/// A map from field names to values, sorted by UTF-8 key.
public struct MapValue: Sendable {
  /// One field.
  public struct Entry: Hashable, Sendable {
    /// The field name, a single segment: a dot in it is part of the name.
    public let key: String
    /// The field's value.
    public var value: Value

    /// Makes a field.
    public init(key: String, value: Value) {
      self.key = key
      self.value = value
    }

    /// Strict equality of key and value.
    public static func == (a: Entry, b: Entry) -> Bool { a.key.hasSameUTF8(as: b.key) && a.value == b.value }

    /// Hashes what `==` compares.
    public func hash(into hasher: inout Hasher) {
      key.hashUTF8(into: &hasher)
      hasher.combine(value)
    }
  }

  /// The fields in key order.
  public private(set) var entries: [Entry]

  /// The empty map.
  public init() { entries = [] }

  /// Makes a map of fields in any order. If a key repeats, the last field is used, as in protobuf.
  public init(unsorted: [Entry]) {
    entries = unsorted
    if !MapValue.isStrictlySorted(entries) { entries = MapValue.sortedKeepingLast(unsorted) }
  }

  /// Makes a map of fields that are known to be sorted, each key once.
  init(sorted entries: [Entry]) {
    assert(
      MapValue.isStrictlySorted(entries), "invariant: the fields of a map are sorted by key, without repeats")
    self.entries = entries
  }

  /// Makes a map of key and value pairs in any order. If a key repeats, the last value is used.
  public init<S: Sequence>(_ pairs: S) where S.Element == (String, Value) {
    self.init(unsorted: pairs.map { Entry(key: $0.0, value: $0.1) })
  }

  /// The number of fields.
  public var count: Int { entries.count }
  /// Whether there are no fields.
  public var isEmpty: Bool { entries.isEmpty }

  /// The value of a field; setting nil removes the field.
  public subscript(key: String) -> Value? {
    get {
      let (index, found) = position(of: key)
      return found ? entries[index].value : nil
    }
    set {
      let (index, found) = position(of: key)
      switch (newValue, found) {
      case (let value?, true): entries[index].value = value
      case (let value?, false): entries.insert(Entry(key: key, value: value), at: index)
      case (nil, true): entries.remove(at: index)
      case (nil, false): break
      }
    }
  }

  /// Whether the map has a field.
  package func hasKey(_ key: String) -> Bool { position(of: key).found }

  /// Changes one field's value in place, without copying the other fields. `body` receives nil for a missing field, and
  /// sets nil to remove the field.
  public mutating func update<R>(_ key: String, _ body: (inout Value?) throws -> R) rethrows -> R {
    let (index, found) = position(of: key)
    var value: Value?
    if found {
      value = entries[index].value
      entries[index].value = .null
    }
    let original = value
    do {
      let result = try body(&value)
      switch (value, found) {
      case (let value?, true): entries[index].value = value
      case (let value?, false): entries.insert(Entry(key: key, value: value), at: index)
      case (nil, true): entries.remove(at: index)
      case (nil, false): break
      }
      return result
    } catch {
      if found, let original { entries[index].value = original }
      throw error
    }
  }

  /// The index of a key, or the index at which to insert it.
  private func position(of key: String) -> (index: Int, found: Bool) { find(key, from: 0) }

  /// The index of a key, or the index at which to insert it, at or after `start`.
  func find(_ key: String, from start: Int) -> (index: Int, found: Bool) {
    var low = start
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      switch ComparisonOrder.compare(utf8: entries[middle].key, key) {
      case .ascending: low = middle + 1
      case .descending: high = middle
      case .same: return (middle, true)
      }
    }
    return (low, false)
  }

  private static func isStrictlySorted(_ entries: [Entry]) -> Bool {
    guard entries.count > 1 else { return true }
    for i in 1..<entries.count
    where ComparisonOrder.compare(utf8: entries[i - 1].key, entries[i].key) != .ascending { return false }
    return true
  }

  private static func sortedKeepingLast(_ entries: [Entry]) -> [Entry] {
    let order = entries.indices.sorted { a, b in
      let ordering = ComparisonOrder.compare(utf8: entries[a].key, entries[b].key)
      return ordering == .same ? a < b : ordering == .ascending
    }
    var result: [Entry] = []
    result.reserveCapacity(entries.count)
    for index in order {
      if let last = result.last, last.key.hasSameUTF8(as: entries[index].key) { result.removeLast() }
      result.append(entries[index])
    }
    return result
  }
}

extension MapValue: Hashable {
  /// Strict equality, see `Value`.
  public static func == (a: MapValue, b: MapValue) -> Bool { a.entries == b.entries }

  /// Hashes what `==` compares.
  public func hash(into hasher: inout Hasher) { hasher.combine(entries) }
}

extension MapValue: ExpressibleByDictionaryLiteral {
  /// Makes a map from a literal. If a key repeats, the last value is used.
  public init(dictionaryLiteral elements: (String, Value)...) { self.init(elements) }
}

extension MapValue: RandomAccessCollection {
  /// Index of the first field.
  public var startIndex: Int { 0 }
  /// Index after the last field.
  public var endIndex: Int { entries.count }
  /// The field at a position in key order.
  public subscript(position: Int) -> Entry { entries[position] }
}
