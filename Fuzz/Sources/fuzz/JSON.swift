// JSON: what is accepted is written again, and reads back as the same.

import RealtimeModel
import RealtimeWire

func fuzzJSON(_ input: UnsafeRawBufferPointer) {
  if let value = try? JSONValue(json: input) {
    let written = value.json()
    guard let again = try? JSONValue(json: written) else {
      require(false, "written JSON is not read")
      return
    }
    require(again.json() == written, "writing changes what was written")
  }
  for rules in [JSONReader.NodeRules.write, .read] {
    guard let node = try? Node(json: input, rules) else { continue }
    // A tree with server values has no export form of its own.
    if node.containsDeferred { continue }
    let written = node.json(.export)
    guard let again = try? Node(json: written, .read) else {
      require(false, "an exported tree is not read")
      return
    }
    require(again == node, "an exported tree is another tree")
  }
  _ = try? ServerMessage(json: input)
}
