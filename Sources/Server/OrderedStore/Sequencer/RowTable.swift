// A row table finds rows by key without ordering them: an open-addressing hash table over a list of rows.
//
// A bulk load writes thousands of rows in one commit, and no body scans them. Inserting a row here takes about a tenth
// of an insertion into an ``OrderedMap``.
//
// Invariants
//   1. Each key is in `rows` at most once, and the slots contain the number of each row exactly once.
//   2. At least half of the slots are empty, so that a search ends.
//
// Hashes are seeded per process (`Hasher`), because clients choose the keys.

/// Rows by key. Rows are never removed one by one.
struct RowTable<Value> {
  /// The rows in the order of their first insertion.
  private(set) var rows: [(key: Key, value: Value)] = []
  /// The upper 32 bits of a key's hash, then the number of its row plus one; 0 for an empty slot.
  private var slots: [UInt64] = []

  /// The hash of a key.
  static func hash(of key: Key) -> UInt64 {
    var hasher = Hasher()
    key.withUnsafeBytes { hasher.combine(bytes: $0) }
    return UInt64(truncatingIfNeeded: hasher.finalize())
  }

  /// The value of a key.
  func value(of key: Key, hash: UInt64) -> Value? {
    guard !slots.isEmpty else { return nil }
    let slot = slots[slot(of: key, hash)]
    return slot == 0 ? nil : rows[Self.number(in: slot)].value
  }

  /// Sets the value of a key.
  mutating func set(_ value: Value, _ key: Key, hash: UInt64) {
    if slots.count < (rows.count + 1) * 2 { grow() }
    let index = slot(of: key, hash)
    if slots[index] != 0 {
      rows[Self.number(in: slots[index])].value = value
      return
    }
    rows.append((key, value))
    slots[index] = hash & 0xFFFF_FFFF_0000_0000 | UInt64(rows.count)
  }

  /// The slot that contains a key, or the empty slot in which it would be inserted.
  private func slot(of key: Key, _ hash: UInt64) -> Int {
    let mask = slots.count - 1
    var index = Self.firstSlot(hash, mask)
    while slots[index] != 0 {
      if slots[index] >> 32 == hash >> 32, rows[Self.number(in: slots[index])].key == key { return index }
      index = (index + 1) & mask
    }
    return index
  }

  private mutating func grow() {
    let old = slots
    slots = Array(repeating: 0, count: max(old.count * 4, 64))
    let mask = slots.count - 1
    for slot in old where slot != 0 {
      var index = Self.firstSlot(slot, mask)
      while slots[index] != 0 { index = (index + 1) & mask }
      slots[index] = slot
    }
  }

  /// The slot at which the search for a hash begins. It depends on the upper half of the hash, which the slots contain.
  private static func firstSlot(_ hash: UInt64, _ mask: Int) -> Int { Int(hash >> 32) & mask }

  private static func number(in slot: UInt64) -> Int { Int(slot & 0xFFFF_FFFF) - 1 }
}
