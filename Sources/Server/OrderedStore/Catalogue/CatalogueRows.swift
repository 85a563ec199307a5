// The catalogue rows of a store: its databases, their floors, the version ceiling and the format of the
// layout. A floor is the oldest readable version of a database. No version above the ceiling has been
// published.
//
// Rows read from disk are validated and reported as corrupted. A debug build decodes each entry after encoding it.

/// Reads and writes the catalogue's rows. ``StorageKeyLayout`` documents their bytes.
enum CatalogueRows {
  /// The number of this layout's format. A store whose stored number differs is not opened.
  static let format: UInt8 = 1

  /// The catalogue entry of one database.
  struct Entry: Sendable, Equatable {
    var number: DatabaseNumber
    var created: Version
    var keepsHistory: Bool
  }

  /// The highest version that a store accepts from disk, in microseconds. Versions follow the clock, so a
  /// higher one shows damage. Versions derived from it would soon overflow 64 bits.
  private static let maximumVersion: UInt64 = 1 << 62

  private static let formatKey: Key = [0, UInt8(ascii: "s")]
  private static let ceilingKey: Key = [0, UInt8(ascii: "v")]
  private static let nextNumberKey: Key = [0, UInt8(ascii: "n")]
  private static let namePrefix: Key = [0, UInt8(ascii: "c")]

  static func putFormat(in batch: any EngineBatch) { put(formatKey, [format], in: batch) }

  static func putCeiling(_ ceiling: Version, in batch: any EngineBatch) {
    put(ceilingKey, StorageKeyLayout.bigEndian(ceiling.microseconds), in: batch)
  }

  static func putNextNumber(_ number: DatabaseNumber, in batch: any EngineBatch) {
    put(nextNumberKey, StorageKeyLayout.bigEndian(number), in: batch)
  }

  static func putFloor(_ floor: Version, of number: DatabaseNumber, in batch: any EngineBatch) {
    put(floorKey(number), StorageKeyLayout.bigEndian(floor.microseconds), in: batch)
  }

  static func put(_ entry: Entry, named name: String, in batch: any EngineBatch) {
    let value =
      StorageKeyLayout.bigEndian(entry.number) + StorageKeyLayout.bigEndian(entry.created.microseconds)
      + [entry.keepsHistory ? 1 : 0]
    assert(decode(value) == entry, "invariant: a catalogue entry decodes to what was encoded")
    put(namePrefix + Array(name.utf8), value, in: batch)
  }

  static func remove(named name: String, _ number: DatabaseNumber, in batch: any EngineBatch) {
    (namePrefix + Array(name.utf8)).withUnsafeBytes { batch.delete($0) }
    floorKey(number).withUnsafeBytes { batch.delete($0) }
  }

  /// The format on disk; nil in a new store.
  static func readFormat(_ snapshot: any EngineSnapshot) throws -> UInt8? {
    try value(of: formatKey, snapshot)?.first
  }

  static func readCeiling(_ snapshot: any EngineSnapshot) throws -> Version {
    let microseconds: UInt64 = try number(value(of: ceilingKey, snapshot)) ?? 0
    guard microseconds <= maximumVersion else {
      throw StoreError(.corrupted, "the version ceiling \(microseconds) in the catalogue is not a time")
    }
    return Version(microseconds: microseconds)
  }

  static func readNextNumber(_ snapshot: any EngineSnapshot) throws -> DatabaseNumber {
    try number(value(of: nextNumberKey, snapshot)) ?? 1
  }

  static func readFloor(of database: DatabaseNumber, _ snapshot: any EngineSnapshot) throws -> Version {
    try Version(microseconds: number(value(of: floorKey(database), snapshot)) ?? 0)
  }

  /// The entry of a database; nil if the catalogue does not contain it.
  static func readEntry(named name: String, _ snapshot: any EngineSnapshot) throws -> Entry? {
    guard let bytes = try value(of: namePrefix + Array(name.utf8), snapshot) else { return nil }
    guard let entry = decode(bytes), try entry.number < readNextNumber(snapshot) else {
      throw StoreError(.corrupted, "the catalogue's entry of \(name) is damaged")
    }
    return entry
  }

  private static func decode(_ bytes: StoredValue) -> Entry? {
    guard bytes.count == 13 else { return nil }
    let entry = bytes.withUnsafeBytes { bytes in
      Entry(
        number: UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)),
        created: StorageKeyLayout.version(in: bytes, at: 4), keepsHistory: bytes[12] == 1)
    }
    return entry.created.microseconds <= maximumVersion ? entry : nil
  }

  /// The names of all databases, in ascending order of their bytes.
  static func readNames(_ snapshot: any EngineSnapshot) throws -> [String] {
    let end = KeyRange.successor(ofPrefix: namePrefix) ?? [1]
    let cursor = try snapshot.cursor(from: namePrefix, to: end, .disk)
    var names: [String] = []
    try cursor.seekToFirst()
    while cursor.isValid {
      names.append(String(decoding: cursor.key.dropFirst(namePrefix.count), as: UTF8.self))
      try cursor.next()
    }
    return names
  }

  private static func floorKey(_ number: DatabaseNumber) -> Key {
    [0, UInt8(ascii: "f")] + StorageKeyLayout.bigEndian(number)
  }

  private static func put(_ key: Key, _ value: StoredValue, in batch: any EngineBatch) {
    key.withUnsafeBytes { key in
      value.withUnsafeBytes { batch.put(key, UnsafeRawBufferPointer(start: nil, count: 0), $0) }
    }
  }

  private static func value(of key: Key, _ snapshot: any EngineSnapshot) throws -> StoredValue? {
    var value: StoredValue?
    _ = try key.withUnsafeBytes { try snapshot.get($0, .disk) { value = StoredValue($0) } }
    return value
  }

  private static func number<Number: FixedWidthInteger>(_ bytes: StoredValue?) throws -> Number? {
    guard let bytes else { return nil }
    guard bytes.count == MemoryLayout<Number>.size else {
      throw StoreError(.corrupted, "a number in the catalogue has \(bytes.count) bytes")
    }
    return bytes.withUnsafeBytes { Number(bigEndian: $0.loadUnaligned(as: Number.self)) }
  }
}
