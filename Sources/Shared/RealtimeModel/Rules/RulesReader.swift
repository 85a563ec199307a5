// Reads the bytes of a rules file. Malformed JSON stops the reader. JSON that is not valid as rules is recorded as a
// problem, and the reader continues.
//
// Differences from JSON: comments (`//`, `/* */`) wherever white space is allowed, a comma after the last member, and
// raw line breaks and tabs in strings.

import JSON

/// Reads one rules file.
struct RulesReader {
  /// Malformed JSON, which stops the reader.
  struct ParseError: Error {
    let offset: Int
    let message: String
  }

  private let positions: RulesPositions
  private var input: RulesInput
  private var problems: [(offset: Int, message: String)] = []
  private var strict = JSONWriter()
  private let check: RuleCheck?

  init(_ bytes: [UInt8], check: RuleCheck?) {
    positions = RulesPositions(bytes)
    input = RulesInput(bytes)
    self.check = check
  }

  /// The root's rules, and the file as plain JSON.
  mutating func read() throws(RulesError) -> (RuleNode, String) {
    var root: RuleNode?
    do throws(ParseError) {
      root = try readFile()
    } catch {
      problems.append((error.offset, error.message))
    }
    guard problems.isEmpty, let root else {
      let sorted = problems.sorted { $0.offset < $1.offset }.prefix(RulesFile.maximumProblems)
      throw RulesError(sorted.map { positions.problem(at: $0.offset, $0.message) })
    }
    return (root, String(decoding: strict.bytes, as: UTF8.self))
  }

  private mutating func recordProblem(_ offset: Int, _ message: String) {
    // Only the first ``RulesFile/maximumProblems`` in text order are reported. Up to twice as many are collected,
    // because a problem that is found at the end of an object may precede already collected problems in the text.
    if problems.count < 2 * RulesFile.maximumProblems { problems.append((offset, message)) }
  }

  private mutating func readFile() throws(ParseError) -> RuleNode? {
    try input.skipSpace()
    guard input.peek == UInt8(ascii: "{") else {
      throw input.unexpected("an object with the property 'rules'")
    }
    var root: RuleNode?
    let inside = input.offset + 1
    try members { reader, name, offset throws(ParseError) in
      guard name == "rules" else {
        reader.recordProblem(offset, "Unexpected property '\(name)': only 'rules' may stand here.")
        return try reader.skipValue()
      }
      reader.strict.key(name)
      root = try reader.readNode([])
    }
    if root == nil, problems.isEmpty { recordProblem(inside, "Expected 'rules' property.") }
    try input.skipSpace()
    guard input.peek == nil else { throw input.unexpected("the end of the text") }
    return root
  }

  /// Reads an object of rules; records a problem for any other value.
  ///
  /// - Parameter path: the names from the root down to the object.
  private mutating func readNode(_ path: [String]) throws(ParseError) -> RuleNode? {
    try input.skipSpace()
    guard input.peek == UInt8(ascii: "{") else {
      recordProblem(input.offset, "Expected an object of rules.")
      try skipValue()
      return nil
    }
    var draft = RuleDraft()
    try members { reader, name, offset throws(ParseError) in
      reader.strict.key(name)
      switch name {
      case ".read": draft.read = try reader.readRule(.read, path)
      case ".write": draft.write = try reader.readRule(.write, path)
      case ".validate": draft.validate = try reader.readRule(.validate, path)
      case ".indexOn": draft.indexes = try reader.readIndexes()
      default: try reader.readChild(name, offset, path, &draft)
      }
    }
    return draft.node
  }

  private mutating func readChild(
    _ name: String, _ offset: Int, _ path: [String], _ draft: inout RuleDraft
  ) throws(ParseError) {
    guard name.utf8.first == UInt8(ascii: "$") else {
      if !ChildKey.isValid(name) {
        recordProblem(
          offset,
          ##"Key names can't contain ".", "#", "$", "/", "[", or "]" (unbound names start with "$")"##)
      } else if name.utf8.count > RealtimeLimits.standard.keyBytes {
        recordProblem(offset, "Key names can have at most \(RealtimeLimits.standard.keyBytes) bytes.")
      }
      if let node = try readNode(path + [name]) { draft.children[ChildKey(name)] = node }
      return
    }
    if !RulesReader.isName(name.utf8.dropFirst()) {
      recordProblem(offset, "A wildcard is a $ and a name of letters, digits and _, not '\(name)'.")
    } else if path.contains(where: { $0.utf8.elementsEqual(name.utf8) }) {
      recordProblem(offset, "The wildcard '\(name)' stands above already: give this one another name.")
    } else if let other = draft.wildcard?.name, other != name {
      recordProblem(offset, "There may be one wildcard at a place: '\(other)' stands here already.")
    }
    if let node = try readNode(path + [name]) { draft.wildcard = (name, node) }
  }

  /// Whether the bytes are the name of a variable.
  private static func isName(_ bytes: some Collection<UInt8>) -> Bool {
    func begins(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) || byte == UInt8(ascii: "_") }
    guard let first = bytes.first, begins(first) else { return false }
    return bytes.allSatisfy { begins($0) || (0x30...0x39).contains($0) }
  }

  private mutating func readRule(
    _ kind: RuleSite.Kind, _ path: [String]
  ) throws(ParseError) -> RuleNode.Rule? {
    try input.skipSpace()
    let rule: RuleNode.Rule
    switch input.peek {
    case UInt8(ascii: "\""):
      let text = try input.readString()
      strict.string(text.string)
      rule = .expression(text.string)
      checkRule(rule, kind, path, at: text.offset(of: 0)) { text.offset(of: $0) }
    case UInt8(ascii: "t"), UInt8(ascii: "f"):
      let start = input.offset
      let value = try input.readWord() == "true"
      strict.bool(value)
      rule = .constant(value)
      checkRule(rule, kind, path, at: start) { _ in start }
    default:
      recordProblem(input.offset, "\(kind.rawValue) must be a string with an expression, or true or false.")
      try skipValue()
      return nil
    }
    return rule
  }

  /// Passes a rule to the checker. As in the hosted service, a mistake is reported at the position of the rule. If the
  /// mistake is on another line, the message names that line.
  private mutating func checkRule(
    _ rule: RuleNode.Rule, _ kind: RuleSite.Kind, _ path: [String], at start: Int, offset: (Int) -> Int
  ) {
    guard let check else { return }
    let (line, column) = positions.position(of: start)
    let site = RuleSite(path: path, kind: kind, rule: rule, line: line, column: column)
    guard let mistake = check(site) else { return }
    let mistakeLine = positions.position(of: offset(mistake.offset)).line
    recordProblem(start, mistakeLine == line ? mistake.message : "\(mistake.message) (line \(mistakeLine))")
  }

  private mutating func readIndexes() throws(ParseError) -> [Ordering] {
    try input.skipSpace()
    var found: [Ordering] = []
    switch input.peek {
    case UInt8(ascii: "\""): try readIndex(&found)
    case UInt8(ascii: "["):
      strict.beginArray()
      try elements { reader throws(ParseError) in try reader.readIndex(&found) }
      strict.endArray()
    default:
      recordProblem(input.offset, ".indexOn must be a string or an array of strings.")
      try skipValue()
    }
    return found
  }

  private mutating func readIndex(_ found: inout [Ordering]) throws(ParseError) {
    guard input.peek == UInt8(ascii: "\"") else {
      recordProblem(input.offset, ".indexOn must be a string or an array of strings.")
      return try skipValue()
    }
    let offset = input.offset
    let text = try input.readString().string
    strict.string(text)
    guard !text.isEmpty, let ordering = try? Ordering(wire: text) else {
      return recordProblem(offset, ".indexOn must name child paths or .value, not '\(text)'.")
    }
    switch ordering {
    case .key, .priority: return
    case .value, .child: if !found.contains(ordering) { found.append(ordering) }
    }
  }

  // MARK: JSON

  /// Reads an object's members. `body` receives each name with its offset, and must read or skip the value.
  private mutating func members(
    _ body: (inout RulesReader, String, Int) throws(ParseError) -> Void
  ) throws(ParseError) {
    strict.beginObject()
    try input.open()
    var seen: Set<ChildKey> = []
    while try input.next(before: UInt8(ascii: "}")) {
      let offset = input.offset
      let name = try input.readString().string
      if !seen.insert(ChildKey(name)).inserted {
        recordProblem(offset, "The property '\(name)' stands here twice.")
      }
      try input.skipSpace()
      try input.expect(UInt8(ascii: ":"))
      try body(&self, name, offset)
      // `body` skipped an invalid value without writing it. The plain form of such a file is discarded, but the writer
      // needs well-formed JSON.
      if strict.needsValue { strict.null() }
    }
    strict.endObject()
  }

  private mutating func elements(_ body: (inout RulesReader) throws(ParseError) -> Void) throws(ParseError) {
    try input.open()
    while try input.next(before: UInt8(ascii: "]")) { try body(&self) }
  }

  /// Skips a misplaced value. The plain form omits the value, because the plain form of a file with problems is not
  /// used.
  private mutating func skipValue() throws(ParseError) {
    try input.skipSpace()
    switch input.peek {
    case UInt8(ascii: "{"):
      try input.open()
      while try input.next(before: UInt8(ascii: "}")) {
        _ = try input.readString()
        try input.skipSpace()
        try input.expect(UInt8(ascii: ":"))
        try skipValue()
      }
    case UInt8(ascii: "["): try elements { reader throws(ParseError) in try reader.skipValue() }
    case UInt8(ascii: "\""): _ = try input.readString()
    default: _ = try input.readWord()
    }
  }
}

/// Collects the rules of a node while its members are read.
private struct RuleDraft {
  var read: RuleNode.Rule?
  var write: RuleNode.Rule?
  var validate: RuleNode.Rule?
  var indexes: [Ordering] = []
  var children: [ChildKey: RuleNode] = [:]
  var wildcard: (name: String, node: RuleNode)?

  var node: RuleNode {
    RuleNode(
      read: read, write: write, validate: validate, indexes: indexes, children: children, wildcard: wildcard)
  }
}
