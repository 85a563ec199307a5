// A transaction of the workload. Its number determines all of its rows, so that a reader can verify that the
// transaction is complete.
//
//   't' <number:8> <row:1>    1 to 9 rows of this transaction only, with pseudo-random values
//   'h' <number % 7>          the last transaction with this remainder; overwritten often
//   'q' <number:8>            a queue: every transaction adds its row and clears all but the last 16 numbers
//   'n'                       the number of transactions

import OrderedStore

/// One transaction of the workload.
struct Transaction: Sendable {
  let number: Int

  /// The first number whose transaction has a large row. The full-disk run uses such numbers.
  static let firstLarge = 1_000_000

  private var rowCount: Int { 1 + number % 9 }

  /// The rows that only this transaction writes.
  var rows: [(key: Key, value: StoredValue)] {
    (0..<rowCount).map { row in
      let large = row == 0 && (number % 50 == 0 || number >= Transaction.firstLarge)
      let value = Transaction.pattern(
        number * 16 + row, length: large ? 40_000 : 20 + (number * 37 + row * 101) % 600)
      return ([UInt8(ascii: "t")] + Transaction.bytes(number) + [UInt8(row)], value)
    }
  }

  var hotKey: Key { [UInt8(ascii: "h"), UInt8(number % 7)] }

  func apply(to state: any SequencedTransaction) throws {
    for (key, value) in rows { try state.set(key, value) }
    try state.set(hotKey, Transaction.bytes(number))
    let queue = UInt8(ascii: "q")
    try state.clear(KeyRange(start: [queue], end: [queue] + Transaction.bytes(max(number - 16, 0))))
    try state.set([queue] + Transaction.bytes(number), [])
    let count = try Transaction.count(state)
    try state.set([UInt8(ascii: "n")], Transaction.bytes(count + 1))
    try state.log(Transaction.bytes(number), nil)
  }

  /// Pseudo-random bytes, which do not compress.
  private static func pattern(_ seed: Int, length: Int) -> StoredValue {
    var generator = SeededRandom(seed: UInt64(seed))
    let words = [UInt64](unsafeUninitializedCapacity: (length + 7) / 8) { words, count in
      while count < words.count {
        words[count] = generator.next()
        count += 1
      }
    }
    return words.withUnsafeBytes { StoredValue(UnsafeRawBufferPointer(rebasing: $0[..<length])) }
  }

  static func bytes(_ number: Int) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) } }

  static func number(_ bytes: some Sequence<UInt8>) -> Int { bytes.prefix(8).reduce(0) { $0 << 8 | Int($1) } }

  /// Reads the number of transactions from the counter row.
  static func count(_ view: any ReadView) throws -> Int {
    number(try view.get([UInt8(ascii: "n")])?.value ?? [])
  }

  /// The numbers of all transactions that have a row.
  static func numbers(_ view: any ReadView) throws -> Set<Int> {
    var numbers: Set<Int> = []
    try view.scan(KeyRange(prefix: [UInt8(ascii: "t")]), reverse: false) { key, _, _ in
      numbers.insert(number(key.dropFirst()))
      return true
    }
    return numbers
  }
}
