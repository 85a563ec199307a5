// Fuzz target: JSON. Accepted JSON is written again and reads back as the same value.

import JSON
import RealtimeModel
import RealtimeWire

func fuzzJSON(_ input: UnsafeRawBufferPointer) throws {
  if let value = try? JSONValue(json: input) {
    let written = value.json()
    let again = try require(try? JSONValue(json: written), "written JSON is not read")
    try require(again.json() == written, "writing again changes the JSON")
  }
  for rules in [JSONReader.NodeRules.write, .read] {
    guard let node = try? Node(json: input, rules) else { continue }
    // A tree with server values has no export form.
    if node.containsDeferred { continue }
    let written = node.json(.export)
    let again = try require(try? Node(json: written, .read), "an exported tree is not read")
    try require(again == node, "an exported tree is another tree")
  }
  _ = try? ServerMessage(json: input)
}
