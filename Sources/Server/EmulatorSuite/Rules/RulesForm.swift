// Checks the syntax of Firestore security rules, except for the syntax of their conditions. Tokens, strings and
// comments must end, and brackets must match. The top level may contain a version and services, with blocks of `match`,
// `allow` and `function`.

/// Checks the syntax of rules.
struct RulesForm {
  /// A syntax error. Line and column count from 1, the byte offset from 0.
  struct Fault: Equatable, Sendable {
    var line: Int
    var column: Int
    var offset: Int
    var message: String
  }

  private struct Token {
    enum Kind: Equatable {
      case word(String)
      case string
      case punctuation(UInt8)
    }

    var kind: Kind
    var offset: Int
  }

  private struct Failure: Error {
    var offset: Int
    var message: String
  }

  private let bytes: [UInt8]
  private var tokens: [Token] = []
  private var next = 0

  /// Returns the first syntax error; nil for valid rules.
  static func fault(in text: String) -> Fault? {
    // Some editors begin a file with a byte-order mark. It is not part of the rules.
    let mark = text.utf8.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
    var form = RulesForm(bytes: Array(text.utf8.dropFirst(mark)))
    do {
      try form.scan()
      try form.readFile()
      return nil
    } catch let failure as Failure {
      let before = form.bytes.prefix(failure.offset)
      let line = before.count { $0 == 0x0A } + 1
      let column = failure.offset - (before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0) + 1
      return Fault(line: line, column: column, offset: failure.offset + mark, message: failure.message)
    } catch {
      return Fault(line: 1, column: 1, offset: 0, message: "The rules cannot be read.")
    }
  }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  // MARK: Tokens

  private mutating func scan() throws {
    var open: [(byte: UInt8, offset: Int)] = []
    let closing: [UInt8: UInt8] = [0x29: 0x28, 0x5D: 0x5B, 0x7D: 0x7B]
    var index = 0
    while index < bytes.count {
      let byte = bytes[index]
      let start = index
      switch byte {
      case 0x20, 0x09, 0x0A, 0x0D: index += 1
      case UInt8(ascii: "/") where bytes.dropFirst(index + 1).first == UInt8(ascii: "/"):
        index = bytes[index...].firstIndex(of: 0x0A) ?? bytes.count
      case UInt8(ascii: "/") where bytes.dropFirst(index + 1).first == UInt8(ascii: "*"):
        index = try endOfComment(index)
      case UInt8(ascii: "'"), UInt8(ascii: "\""):
        index = try endOfString(index)
        tokens.append(Token(kind: .string, offset: start))
      case 0x41...0x5A, 0x61...0x7A, 0x5F, 0x80...:
        while index < bytes.count, Self.isWord(bytes[index]) { index += 1 }
        let word = String(decoding: bytes[start..<index], as: UTF8.self)
        tokens.append(Token(kind: .word(word), offset: start))
      case 0x28, 0x5B, 0x7B:
        guard open.count < 100 else {
          throw Failure(offset: index, message: "Brackets are nested too deeply.")
        }
        open.append((byte, index))
        tokens.append(Token(kind: .punctuation(byte), offset: index))
        index += 1
      case 0x29, 0x5D, 0x7D:
        guard open.popLast()?.byte == closing[byte] else {
          throw Failure(offset: index, message: "Unexpected '\(Unicode.Scalar(byte))'.")
        }
        tokens.append(Token(kind: .punctuation(byte), offset: index))
        index += 1
      default:
        guard byte > 0x20, byte < 0x7F else { throw Failure(offset: index, message: "Unexpected character.") }
        tokens.append(Token(kind: .punctuation(byte), offset: index))
        index += 1
      }
    }
    if let last = open.last {
      throw Failure(offset: last.offset, message: "Missing the end of '\(Unicode.Scalar(last.byte))'.")
    }
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x5F, 0x80...: true
    default: false
    }
  }

  private func endOfComment(_ start: Int) throws -> Int {
    var index = start + 2
    while index + 1 < bytes.count {
      if bytes[index] == UInt8(ascii: "*"), bytes[index + 1] == UInt8(ascii: "/") { return index + 2 }
      index += 1
    }
    throw Failure(offset: start, message: "Missing the end of a comment.")
  }

  private func endOfString(_ start: Int) throws -> Int {
    var index = start + 1
    while index < bytes.count, bytes[index] != 0x0A {
      if bytes[index] == bytes[start] { return index + 1 }
      index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
    }
    throw Failure(offset: start, message: "Missing the end of a string.")
  }

  // MARK: Structure

  private mutating func readFile() throws {
    var services = 0
    while let token = peek() {
      switch token.kind {
      case .word("rules_version"):
        _ = take()
        try expect("=")
        guard take()?.kind == .string else { throw unexpected("Missing the version as a string.") }
        skip(";")
      case .word("service"):
        _ = take()
        try readService()
        services += 1
      case .word("import"): try skipStatement()
      case .word("function"): try readFunction()
      default: throw unexpected("Unexpected text outside of a service.")
      }
    }
    guard services > 0 else {
      throw Failure(offset: bytes.count, message: "Missing 'service cloud.firestore'.")
    }
  }

  private mutating func readService() throws {
    guard case .word? = take()?.kind else { throw unexpected("Missing the service's name.") }
    while skip(".") {
      guard case .word? = take()?.kind else { throw unexpected("Missing the service's name.") }
    }
    try readBlock()
  }

  private mutating func readBlock() throws {
    try expect("{")
    while let token = peek(), token.kind != .punctuation(UInt8(ascii: "}")) {
      switch token.kind {
      case .word("match"): try readMatch()
      case .word("allow"): try readAllow()
      case .word("function"): try readFunction()
      default: throw unexpected("Unexpected text; 'match', 'allow' or 'function' is allowed here.")
      }
    }
    try expect("}")
  }

  private mutating func readMatch() throws {
    _ = take()
    guard peek()?.kind == .punctuation(UInt8(ascii: "/")) else {
      throw unexpected("Missing the path of 'match': it begins with '/'.")
    }
    while skip("/") {
      if skip("{") {
        guard case .word? = take()?.kind else { throw unexpected("Missing the name of a wildcard.") }
        if skip("=") { while skip("*") {} }
        try expect("}")
      } else {
        guard peek()?.kind != .punctuation(UInt8(ascii: "{")), take() != nil else {
          throw unexpected("Missing a segment of the path.")
        }
        while let token = peek(), !isPathEnd(token) { _ = take() }
      }
    }
    try readBlock()
  }

  private func isPathEnd(_ token: Token) -> Bool {
    token.kind == .punctuation(UInt8(ascii: "/")) || token.kind == .punctuation(UInt8(ascii: "{"))
  }

  private static let methods: Set<String> = ["read", "write", "get", "list", "create", "update", "delete"]

  private mutating func readAllow() throws {
    _ = take()
    repeat {
      guard case .word(let method)? = peek()?.kind, Self.methods.contains(method) else {
        throw unexpected("Missing what to allow: read, write, get, list, create, update or delete.")
      }
      _ = take()
    } while skip(",")
    if skip(":") {
      guard take()?.kind == .word("if") else { throw unexpected("Missing 'if' after 'allow'.") }
      try readCondition("Missing conditional expression after 'if'.")
    }
    skip(";")
  }

  private mutating func readCondition(_ message: String) throws {
    let start = next
    var depth = 0
    while let token = peek() {
      if case .punctuation(let byte) = token.kind {
        if [0x28, 0x5B, 0x7B].contains(byte) { depth += 1 }
        if [0x29, 0x5D, 0x7D].contains(byte) {
          if depth == 0 { break }
          depth -= 1
        }
        if byte == UInt8(ascii: ";"), depth == 0 { break }
      }
      if depth == 0, next > start, token.kind == .word("allow") || token.kind == .word("match") { break }
      _ = take()
    }
    guard next > start else { throw unexpected(message) }
  }

  private mutating func readFunction() throws {
    _ = take()
    guard case .word? = take()?.kind else { throw unexpected("Missing the function's name.") }
    guard peek()?.kind == .punctuation(UInt8(ascii: "(")) else { throw unexpected("Missing '('.") }
    try skipBrackets()
    guard peek()?.kind == .punctuation(UInt8(ascii: "{")) else { throw unexpected("Missing '{'.") }
    let body = next
    try skipBrackets()
    guard tokens[body..<next].contains(where: { $0.kind == .word("return") }) else {
      next = body
      throw unexpected("Missing 'return' in a function.")
    }
  }

  // MARK: Steps

  private func peek() -> Token? { next < tokens.count ? tokens[next] : nil }

  private mutating func take() -> Token? {
    guard next < tokens.count else { return nil }
    defer { next += 1 }
    return tokens[next]
  }

  @discardableResult
  private mutating func skip(_ character: Unicode.Scalar) -> Bool {
    guard peek()?.kind == .punctuation(UInt8(ascii: character)) else { return false }
    next += 1
    return true
  }

  private mutating func expect(_ character: Unicode.Scalar) throws {
    guard skip(character) else { throw unexpected("Missing '\(character)'.") }
  }

  private mutating func skipStatement() throws {
    while let token = take(), token.kind != .punctuation(UInt8(ascii: ";")) {}
  }

  /// Skips a bracketed block. Brackets match, as the scan checked.
  private mutating func skipBrackets() throws {
    var depth = 0
    repeat {
      guard case .punctuation(let byte)? = peek()?.kind else {
        guard take() != nil else { return }
        continue
      }
      if [0x28, 0x5B, 0x7B].contains(byte) { depth += 1 }
      if [0x29, 0x5D, 0x7D].contains(byte) { depth -= 1 }
      next += 1
    } while depth > 0
  }

  private func unexpected(_ message: String) -> Failure {
    Failure(offset: peek()?.offset ?? tokens.last?.offset ?? 0, message: message)
  }
}
