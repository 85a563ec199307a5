// Decides queries by proof, before they run. Rules are not filters: they must allow every document that a query could
// return. The filter of a query is an OR of alternatives (disjuncts). The terms of an alternative restrict the fields
// of every document that it can return. The rules are evaluated with these restrictions in place of a document, and
// must allow each alternative. Orders, cursors and limits restrict no fields.

package import FirestoreModel

/// The facts that the filters of one alternative of a query imply about the fields of its documents.
struct QueryKnowledge {
  /// The document that the alternative names, by a comparison of `__name__`.
  private(set) var document: ResourcePath?
  private var fields: [(path: FieldPath, terms: [FilterTerm])] = []

  init(_ terms: [FilterTerm]) {
    for term in terms {
      if term.field.isDocumentID {
        if case .field(let filter) = term, filter.op == .equal, case .reference(let name) = filter.value {
          document = name.path
        }
        continue
      }
      if let index = fields.firstIndex(where: { $0.path == term.field }) {
        if !fields[index].terms.contains(term) { fields[index].terms.append(term) }
      } else {
        fields.append((term.field, [term]))
      }
    }
  }

  /// The value of `resource`: a map with `data`.
  var resource: RuleValue {
    var root = Node()
    for (path, terms) in fields { root.set(Self.value(of: terms), at: path.segments[...]) }
    return .map(.built([RuleMap.Entry(RuleText("data"), root.value)]))
  }

  /// A tree of known fields.
  private struct Node {
    var value: RuleValue {
      leaf ?? .map(.built(children.map { RuleMap.Entry(RuleText($0.key), $0.node.value) }))
    }
    private var leaf: RuleValue?
    private var children: [(key: String, node: Node)] = []

    mutating func set(_ value: RuleValue, at path: ArraySlice<String>) {
      guard let key = path.first else {
        leaf = value
        return
      }
      let index = children.firstIndex { $0.key.utf8.elementsEqual(key.utf8) } ?? children.count
      if index == children.count { children.append((key, Node())) }
      children[index].node.set(value, at: path.dropFirst())
    }
  }

  private static func value(of terms: [FilterTerm]) -> RuleValue {
    if terms.count == 1, let value = exactValue(of: terms[0]) { return value }
    return .constraint(RuleConstraint(terms.flatMap(comparators)))
  }

  /// The value of a field whose only filter is an equality; nil for another filter.
  private static func exactValue(of term: FilterTerm) -> RuleValue? {
    switch term {
    case .field(let filter):
      guard filter.op == .equal, !isUnsatisfiable(filter) else { return nil }
      return RuleValue(filter.value)
    case .unary(let filter):
      return switch filter.op {
      case .isNull: .null
      case .isNaN: .float(.nan)
      case .isNotNull, .isNotNaN: nil
      }
    }
  }

  /// Whether no document satisfies a comparison, because its operand is null or NaN.
  private static func isUnsatisfiable(_ filter: FieldFilter) -> Bool {
    guard filter.op != .arrayContains, filter.op != .notIn else { return false }
    if case .null = filter.value { return true }
    return filter.value.isNaN
  }

  private static func comparators(_ term: FilterTerm) -> [(RuleConstraint.Comparator, RuleValue)] {
    switch term {
    case .unary(let filter):
      return switch filter.op {
      case .isNull: [(.equal, .null)]
      case .isNaN: [(.equal, .float(.nan))]
      case .isNotNull: [(.notEqual, .null)]
      case .isNotNaN: [(.notEqual, .float(.nan))]
      }
    case .field(let filter):
      // No document satisfies the comparison, so every condition holds for all of its documents. Two contradictory
      // comparisons represent this, because together they imply every condition.
      if isUnsatisfiable(filter) { return [(.equal, .bool(true)), (.equal, .bool(false))] }
      let value = RuleValue(filter.value)
      switch filter.op {
      case .equal: return [(.equal, value)]
      case .notEqual: return [(.notEqual, value)]
      case .lessThan: return [(.less, value)]
      case .lessThanOrEqual: return [(.lessOrEqual, value)]
      case .greaterThan: return [(.greater, value)]
      case .greaterThanOrEqual: return [(.greaterOrEqual, value)]
      case .arrayContains:
        if case .null = value { return [(.contains, .list(.built([])))] }
        return [(.contains, value)]
      case .notIn:
        guard case .array(let values) = filter.value else { return [] }
        return values.map { (.notEqual, RuleValue($0)) }
      case .isIn, .arrayContainsAny: return []
      }
    }
  }
}

/// The properties of a query that rules use to decide it: its collections, filter, limit, offset and order.
package struct RuleQuery: Sendable {
  /// The root or the document below which collections are searched.
  package var parent: ResourcePath
  /// The id of the collections; nil for all.
  package var collectionID: String?
  /// Whether collections at any depth below the parent are searched.
  package var isGroup: Bool
  /// The alternatives of the filter; one empty alternative without a filter.
  package var alternatives: [[FilterTerm]]
  /// The limit, offset and order.
  package var shape: RuleQueryShape

  /// Makes a query.
  package init(
    parent: ResourcePath, collectionID: String?, isGroup: Bool = false, alternatives: [[FilterTerm]] = [[]],
    shape: RuleQueryShape = RuleQueryShape(limit: nil)
  ) {
    self.parent = parent
    self.collectionID = collectionID
    self.isGroup = isGroup
    self.alternatives = alternatives
    self.shape = shape
  }
}

extension FirestoreRuleset {
  /// Decides a query before it runs.
  /// - Throws: any error that reading a document through `context` throws.
  package func decideQuery(_ query: RuleQuery, _ context: Context) throws -> RuleDecision {
    decide(try steps(query, context), context.lookups(operationCount: 1), .shared)
  }

  /// The steps of a query: one for each distinct alternative.
  func steps(_ query: RuleQuery, _ context: Context) throws -> [DecisionStep] {
    var seen = Set<[FilterTerm]>()
    var steps: [DecisionStep] = []
    for terms in query.alternatives where seen.insert(terms).inserted {
      let knowledge = QueryKnowledge(terms)
      var request = RuleRequest(
        method: .list, database: context.database, path: query.parent, auth: context.caller.value,
        time: context.time, resource: .missing, newResource: nil, query: query.shape.value,
        requestedDocument: nil)
      if let document = knowledge.document {
        let fields = try context.documents.fields(of: document, afterWrites: false)
        request.path = document
        request.requestedDocument = (document, fields, fields)
        if fields != nil { request.resource = .value(Self.document(document, fields, context)) }
        steps.append(.document(request))
        continue
      }
      request.resource = .value(knowledge.resource)
      if let id = query.collectionID, !query.isGroup {
        request.path = query.parent.appending(id)
        steps.append(.query(request))
      } else {
        request.isPathKnown = false
        steps.append(.group(request, id: query.collectionID, below: query.parent))
      }
    }
    return steps
  }
}
