// Rows that are sequenced but not yet in the snapshot that bodies read from: what lies over the durable state.
//
// Invariant: durable snapshot overlaid with these entries = all sequenced commits, plus the running body's writes.

/// Rows of commits in flight.
struct UncommittedRows {
  /// A row in flight: a value, or nil where the row was cleared.
  struct Entry {
    var version: Version
    var value: StoredValue?
  }

  private(set) var entries = OrderedMap<Entry>()
  private var flights: [(version: Version, keys: [Key])] = []
  private var head = 0

  /// The row in flight of a key, if any.
  subscript(_ key: Key) -> Entry? { entries.isEmpty ? nil : entries[key] }

  /// Puts a row over the others; returns the one it covers.
  mutating func put(_ entry: Entry, _ key: Key) -> Entry? { entries.updateValue(entry, forKey: key) }

  /// Takes back a row: puts what it covered in its place.
  mutating func restore(_ entry: Entry?, _ key: Key) {
    if let entry { entries.updateValue(entry, forKey: key) } else { entries.removeValue(forKey: key) }
  }

  /// Remembers the keys of a commit until it is durable.
  mutating func sequenced(_ version: Version, _ keys: [Key]) { flights.append((version, keys)) }

  /// Drops what a durable state up to `version` holds.
  mutating func settle(_ version: Version) {
    while head < flights.count, flights[head].version <= version {
      for key in flights[head].keys { entries.removeValue(forKey: key) { $0.version <= version } }
      flights[head].keys = []
      head += 1
    }
    if head == flights.count {
      flights.removeAll(keepingCapacity: true)
      head = 0
    } else if head >= 256, head * 2 >= flights.count {
      flights.removeFirst(head)
      head = 0
    }
  }
}
