// Tests of the uncommitted rows of a sequencer against a dictionary, and of `RowTable` and `KeyList`, which hold rows
// and keys.

import RandomModels
import Testing

@testable import OrderedStore

@Suite("Uncommitted rows")
struct UncommittedRowsTests {
  /// A row of the model: the newest entry that a commit or the running body has written.
  private struct Row: Equatable {
    var version: UInt64
    var value: StoredValue?
  }

  @Test(
    "Reads and scans see the rows of all commits in flight and of the running body, also after rollbacks",
    arguments: 1...12 as ClosedRange<UInt64>)
  func agreesWithModel(_ seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var rows = UncommittedRows()
    // Some seeds write enough rows for several of the segments into which `UncommittedRows` divides its rows, and some
    // seeds scan the rows after every body.
    let (maximumRows, bodiesPerScan) = ([4, 40, 1500][Int(seed % 3)], [1, 5, 40][Int(seed / 3 % 3)])
    var model: [Key: Row] = [:]
    var version: UInt64 = 0
    var published: UInt64 = 0
    for _ in 0..<60 {
      if Bool.random(using: &random) {
        published = UInt64.random(in: published...version, using: &random)
        rows.removePublished(upTo: Version(microseconds: published))
      }
      let before = model
      var journal: [(Key, UncommittedRows.Entry?)] = []
      for _ in 0..<Int.random(in: 1...maximumRows, using: &random) {
        let key = random.key()
        let value = Bool.random(using: &random) ? [UInt8.random(in: 0...255, using: &random)] : nil
        // A key has no row if a commit in flight has removed it, or if no commit in flight has written it.
        let isInsertion = value != nil && model[key]?.value == nil && model[key]?.version != version + 1
        let entry = UncommittedRows.Entry(version: Version(microseconds: version + 1), value: value)
        let hidden = rows.put(entry, key, isInsertion: isInsertion)
        if hidden?.version.microseconds != version + 1 { journal.append((key, hidden)) }
        if let earlier = model[key], earlier.version > published, !isInsertion {
          #expect(hidden?.version.microseconds == earlier.version && hidden?.value == earlier.value)
        }
        model[key] = Row(version: version + 1, value: value)
        if Int.random(in: 0..<maximumRows, using: &random) == 0 {
          expect(rows: &rows, model, published, scans: true)
        }
      }
      if Int.random(in: 0..<3, using: &random) == 0 {
        for (key, entry) in journal { rows.restore(entry, key) }
        model = before
      } else {
        version += 1
        rows.recordCommit(bytes: maximumRows * 700, at: Version(microseconds: version))
      }
      expect(rows: &rows, model, published, scans: Int.random(in: 0..<bodiesPerScan, using: &random) == 0)
    }
    rows.removePublished(upTo: Version(microseconds: version))
    #expect(rows.orderedRows().isEmpty)
  }

  /// Compares the rows above the published version. Rows of published commits may be missing.
  private func expect(rows: inout UncommittedRows, _ model: [Key: Row], _ published: UInt64, scans: Bool) {
    for (key, row) in model {
      guard let entry = rows[key] else {
        #expect(row.version <= published)
        continue
      }
      #expect(entry.version.microseconds == row.version && entry.value == row.value)
    }
    guard scans else { return }
    var cursor = OrderedMapCursor(rows.orderedRows())
    cursor.seekToFirst()
    var scanned: [Key] = []
    while cursor.isValid {
      scanned.append(cursor.key)
      #expect(model[cursor.key] == Row(version: cursor.value.version.microseconds, value: cursor.value.value))
      cursor.next()
    }
    #expect(zip(scanned, scanned.dropFirst()).allSatisfy { compareKeys($0, $1) < 0 })
    let inFlight = Set(model.filter { $0.value.version > published }.keys)
    #expect(inFlight.isSubset(of: scanned))
  }

  @Test("A row table agrees with a dictionary, also for keys of equal hashes")
  func table() {
    var random = SeededGenerator(seed: 1)
    var table = RowTable<Int>()
    var model: [Key: Int] = [:]
    for step in 0..<5000 {
      let key = random.key()
      // Many keys share few hashes, so that the table must search for free slots.
      let hash = UInt64(key.first ?? 0) << 60 | UInt64(key.count)
      #expect(table.value(of: key, hash: hash) == model[key])
      table.set(step, key, hash: hash)
      model[key] = step
    }
    #expect(table.rows.count == model.count)
    #expect(table.rows.allSatisfy { model[$0.key] == $0.value })
  }

  @Test("A key list returns the keys from which it was made", arguments: [0, 1, 700])
  func keyList(count: Int) {
    var random = SeededGenerator(seed: UInt64(count))
    let keys = (0..<count).map { _ in random.key() }
    let list = KeyList(keys)
    #expect(Array(list) == keys)
    #expect(list.count == count)
    #expect(list.byteCount == keys.reduce(0) { $0 + $1.count })
  }
}
