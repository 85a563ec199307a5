// Fuzz target: rules files of both databases. An accepted file reads the same as plain JSON and with comments.
// A rejected file is rejected at a position inside it.

import JSON
import RealtimeModel

@testable import EmulatorSuite

func fuzzRules(_ input: UnsafeRawBufferPointer) throws {
  try readRealtimeRules(Array(input))
  try readFirestoreRules(String(decoding: input, as: UTF8.self))
}

private func readRealtimeRules(_ bytes: [UInt8]) throws {
  let file: RulesFile
  do throws(RulesError) {
    file = try RulesFile(bytes)
  } catch {
    let lines = bytes.count { $0 == 0x0A } + 1
    try require((1...RulesFile.maximumProblems).contains(error.problems.count), "no problem, or too many")
    for problem in error.problems {
      try require(
        (1...lines).contains(problem.line) && (1...bytes.count + 1).contains(problem.column),
        "\(problem) is no place of the text")
    }
    return
  }
  let plain = Array(file.strictText.utf8)
  try require((try? JSONValue(json: plain)) != nil, "the plain form is no JSON")
  let again = try require(try? RulesFile(plain), "the plain form is refused")
  try require(again.strictText == file.strictText, "the plain form has another plain form")
  try require(again.root.saysTheSame(as: file.root), "the plain form says something else")
  try require(again.root.hasSameIndexes(as: file.root), "the plain form has other indexes")
}

extension RuleNode {
  fileprivate func saysTheSame(as other: RuleNode) -> Bool {
    read == other.read && write == other.write && validate == other.validate && indexes == other.indexes
      && children.count == other.children.count
      && children.allSatisfy { other.children[$0.key]?.saysTheSame(as: $0.value) ?? false }
      && wildcard?.name == other.wildcard?.name
      && (wildcard?.node).map { other.wildcard?.node.saysTheSame(as: $0) ?? false } ?? true
  }
}

private func readFirestoreRules(_ text: String) throws {
  if let fault = RulesForm.fault(in: text) {
    let lines = text.utf8.count { $0 == 0x0A } + 1
    try require(
      (0...text.utf8.count).contains(fault.offset) && (1...lines).contains(fault.line)
        && (1...fault.offset + 1).contains(fault.column), "\(fault) is no place of the text")
  } else {
    try require(
      RulesForm.fault(in: "/* a */ \(text)\n// b") == nil, "comments around it make a text wrong")
  }
}
