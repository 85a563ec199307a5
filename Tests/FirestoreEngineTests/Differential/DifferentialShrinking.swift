// Shrinks a failing program of the differential test to a minimal one. If any single document, index, commit, question (a
// query and how it runs) or part of these is removed from the minimal program, the program passes.

import FirestoreModel

@testable import FirestoreEngine

extension DifferentialProgram {
  /// Returns a minimal program that still fails.
  func shrunk() async -> DifferentialProgram {
    var smallest = self
    var madeProgress = true
    while madeProgress {
      madeProgress = false
      for smaller in smallest.smaller where smaller.questions.allSatisfy(\.isValid) {
        guard await DifferentialRun.difference(smaller, timeout: 5_000_000) != nil else { continue }
        smallest = smaller
        madeProgress = true
        break
      }
    }
    return smallest
  }

  /// The program with one part removed, for every part; largest reductions first.
  private var smaller: [DifferentialProgram] {
    var programs: [DifferentialProgram] = []
    func addVariant(_ body: (inout DifferentialProgram) -> Void) {
      var variant = self
      body(&variant)
      programs.append(variant)
    }
    for index in questions.indices where questions.count > 1 {
      addVariant { $0.questions = [questions[index]] }
    }
    if !commits.isEmpty { addVariant { $0.commits = [] } }
    if indexes != DatabaseIndexConfiguration() { addVariant { $0.indexes = DatabaseIndexConfiguration() } }
    if documents.count > 3 {
      addVariant { $0.documents = Array(documents.prefix(documents.count / 2)) }
      addVariant { $0.documents = Array(documents.suffix(documents.count / 2)) }
    }
    for index in commits.indices { addVariant { $0.commits.remove(at: index) } }
    for index in commits.indices {
      for change in commits[index].indices where commits[index].count > 1 {
        addVariant { $0.commits[index].remove(at: change) }
      }
    }
    for index in indexes.indexes.indices { addVariant { $0.indexes.indexes.remove(at: index) } }
    for index in indexes.overrides.indices { addVariant { $0.indexes.overrides.remove(at: index) } }
    if maximumScanRows != EngineLimits.maximumScanRows {
      addVariant { $0.maximumScanRows = EngineLimits.maximumScanRows }
    }
    for index in documents.indices { addVariant { $0.documents.remove(at: index) } }
    for index in questions.indices {
      for question in questions[index].smaller { addVariant { $0.questions[index] = question } }
    }
    for (index, document) in documents.enumerated() {
      for entry in document.fields.entries { addVariant { $0.documents[index].fields[entry.key] = nil } }
    }
    return programs
  }
}

extension DifferentialProgram.Question {
  fileprivate var smaller: [DifferentialProgram.Question] {
    var questions: [DifferentialProgram.Question] = []
    func addVariant(_ body: (inout DifferentialProgram.Question) -> Void) {
      var variant = self
      body(&variant)
      if variant != self { questions.append(variant) }
    }
    addVariant { $0.aggregates = [] }
    for index in aggregates.indices { addVariant { $0.aggregates.remove(at: index) } }
    addVariant { $0.pageSize = nil }
    addVariant { $0.isToLast = false }
    addVariant { $0.query.structured.filter = nil }
    for part in Self.parts(of: query.structured.filter) { addVariant { $0.query.structured.filter = part } }
    addVariant { $0.query.structured.startAt = nil }
    addVariant { $0.query.structured.endAt = nil }
    addVariant { $0.query.structured.offset = 0 }
    addVariant { $0.query.structured.limit = nil }
    addVariant { $0.query.structured.select = nil }
    for index in query.structured.orderBy.indices {
      addVariant { $0.query.structured.orderBy.remove(at: index) }
    }
    return questions
  }

  /// Returns the parts of the filter, and the filter with one part removed or reduced.
  private static func parts(of filter: Filter?) -> [Filter] {
    guard case .composite(let op, let parts)? = filter else { return [] }
    var smaller = parts
    if parts.count > 1 {
      for index in parts.indices {
        var rest = parts
        rest.remove(at: index)
        smaller.append(.composite(op, rest))
      }
    }
    for (index, part) in parts.enumerated() {
      for less in self.parts(of: part) {
        var changed = parts
        changed[index] = less
        smaller.append(.composite(op, changed))
      }
    }
    return smaller
  }
}
