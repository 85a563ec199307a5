internal import OrderedStore

/// A row as a check compares it.
struct ModelRow: Equatable, Sendable, CustomStringConvertible {
  var key: Key
  var value: StoredValue
  var writtenAt: Version

  var description: String { "\(key)=\(value)@\(writtenAt)" }
}

/// The naive model: rows in a list, sorted by the standard library's comparison of bytes.
struct ModelMap: Sendable {
  private(set) var rows: [ModelRow] = []

  private func place(of key: Key) -> (index: Int, found: Bool) {
    let index = rows.firstIndex { !$0.key.lexicographicallyPrecedes(key) } ?? rows.count
    return (index, index < rows.count && rows[index].key == key)
  }

  func get(_ key: Key) -> ModelRow? {
    let place = place(of: key)
    return place.found ? rows[place.index] : nil
  }

  mutating func set(_ key: Key, _ value: StoredValue, at version: Version) {
    let place = place(of: key)
    let row = ModelRow(key: key, value: value, writtenAt: version)
    if place.found { rows[place.index] = row } else { rows.insert(row, at: place.index) }
  }

  mutating func clear(_ key: Key) {
    let place = place(of: key)
    if place.found { rows.remove(at: place.index) }
  }

  mutating func clear(_ range: KeyRange) { rows.removeAll { range.contains($0.key) } }

  func scan(_ range: KeyRange, reverse: Bool, limit: Int = .max) -> [ModelRow] {
    let inside = rows.filter { range.contains($0.key) }
    return Array((reverse ? inside.reversed() : inside).prefix(limit))
  }
}

extension ReadView {
  /// The rows of a range, copied.
  func rows(_ range: KeyRange, reverse: Bool = false, limit: Int = .max) throws -> [ModelRow] {
    var rows: [ModelRow] = []
    guard limit > 0 else { return rows }
    try scan(range, reverse: reverse) { key, value, writtenAt in
      rows.append(ModelRow(key: Key(key), value: StoredValue(value), writtenAt: writtenAt))
      return rows.count < limit
    }
    return rows
  }

  /// The row of a key.
  func row(_ key: Key) throws -> ModelRow? {
    try get(key).map { ModelRow(key: key, value: $0.value, writtenAt: $0.writtenAt) }
  }

  /// The number stored under a key; zero if there is none.
  func number(_ key: Key) throws -> Int {
    guard let value = try get(key)?.value else { return 0 }
    return Int(String(decoding: value, as: UTF8.self)) ?? 0
  }
}

extension SequencedTransaction {
  /// Stores a number under a key.
  func set(_ key: Key, number: Int) throws { try set(key, Array(String(number).utf8)) }
}

extension KeyRange {
  /// Every key.
  static let all = KeyRange(start: [], end: nil)
}

/// One random write.
enum ModelWrite: Sendable {
  case set(Key, StoredValue)
  case clear(Key)
  case clearRange(KeyRange)

  static func random(_ random: inout SeededGenerator) -> ModelWrite {
    switch Int.random(in: 0..<10, using: &random) {
    case 0: .clearRange(random.range())
    case 1...3: .clear(random.key())
    default: .set(random.key(), random.value())
    }
  }

  func apply(to state: any SequencedTransaction) throws {
    switch self {
    case .set(let key, let value): try state.set(key, value)
    case .clear(let key): try state.clear(key)
    case .clearRange(let range): try state.clear(range)
    }
  }

  func apply(to model: inout ModelMap, at version: Version) {
    switch self {
    case .set(let key, let value): model.set(key, value, at: version)
    case .clear(let key): model.clear(key)
    case .clearRange(let range): model.clear(range)
    }
  }
}
