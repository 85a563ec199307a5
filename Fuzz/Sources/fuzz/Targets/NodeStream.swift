// Fuzz target: JSON in chunks. It is accepted if and only if the complete document is, with the same value.

import JSON
import RealtimeModel

/// The first byte is the chunk size; the rest is the document.
func fuzzNodeStream(_ input: UnsafeRawBufferPointer) throws {
  guard let first = input.first else { return }
  let text = Array(input.dropFirst())
  let complete: Node?
  do throws(JSONError) {
    complete = try Node(json: text, .write)
  } catch {
    // Each parser has its own depth limit, below the database's.
    if error.code == .tooDeep { return }
    complete = nil
  }
  var reader = NodeStreamReader()
  var node = Node.empty
  func apply(_ event: NodeStreamReader.Event) {
    switch event {
    case .row(let keys, let leaf): node = node.setting(Path(keys: keys), to: leaf)
    case .repeated(let keys): node = node.setting(Path(keys: keys), to: .empty)
    case .priority(let keys, let leaf): node = node.setting(Path(keys: keys + [.priority]), to: leaf)
    }
  }
  do throws(RealtimeError) {
    var rest = text[...]
    while !rest.isEmpty {
      let piece = Array(rest.prefix(Int(first) + 1))
      rest = rest.dropFirst(piece.count)
      try piece.withUnsafeBytes { raw in
        Result { () throws(RealtimeError) in try reader.read(raw, apply) }
      }.get()
    }
    try reader.finish(apply)
  } catch {
    if error.message.contains("levels deep") { return }
    try require(complete == nil, "rejected in chunks, accepted as a complete document: \(error)")
    return
  }
  let accepted = try require(complete, "accepted in chunks, rejected as a complete document")
  try require(node == accepted, "the chunks have another value")
  if node.containsDeferred { return }

  var writer = NodeStreamWriter()
  node.forEachLeaf { path, leaf in writer.row(path.keys, leaf) }
  writer.finish()
  let again = try require(try? Node(json: writer.take(), .write), "written rows are rejected")
  try require(again == node, "written rows have another value")
}
