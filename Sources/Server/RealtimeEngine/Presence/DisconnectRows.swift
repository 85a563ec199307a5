// What a session registered for its end, as it stands in its rows: it survives the server that took it.

import OrderedStore
import RealtimeModel

/// A session's caller and the values it wants set when it ends, ancestors before descendants.
struct DisconnectRows {
  private(set) var caller = Caller.anonymous
  private(set) var values: [(path: Path, value: Node)] = []
  private(set) var isEmpty = true

  init(session: String, in view: any ReadView) throws {
    let prefix = RowKeys.prefix(ofSession: session)
    var caller = Caller.anonymous
    var values: [(path: Path, value: Node)] = []
    var isEmpty = true
    try view.scan(KeyRange(prefix: prefix), reverse: false) { key, value, _ in
      isEmpty = false
      var decoder = NodeDecoder(value)
      if key.count > prefix.count, key[prefix.count] == UInt8(ascii: "c") {
        caller = try CallerCoding.decode(&decoder)
      } else {
        let path = UnsafeRawBufferPointer(rebasing: key[(prefix.count + 1)...])
        values.append((Path(keys: RowKeys.keys(in: path)), try decoder.node()))
      }
      return true
    }
    self.caller = caller
    self.values = values
    self.isEmpty = isEmpty
  }
}

/// Changes in the order they happen, brought into a form where none lies inside another.
struct FoldedChanges {
  private(set) var changes: [(path: Path, value: Node)] = []

  /// Adds what happens after everything added so far.
  mutating func add(_ path: Path, _ value: Node) {
    if let i = changes.firstIndex(where: { $0.path.contains(path) }) {
      let relative = Path(keys: Array(path.keys.dropFirst(changes[i].path.count)))
      changes[i].value = changes[i].value.setting(relative, to: value)
      return
    }
    changes.removeAll { path.contains($0.path) }
    changes.append((path, value))
  }
}
