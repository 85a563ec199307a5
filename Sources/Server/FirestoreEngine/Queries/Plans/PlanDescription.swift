// Describes a plan's indexes in Firebase's format.

import FirestoreModel
import OrderedStore

extension Planner {
  /// The indexes that a plan of this query reads.
  func indexes(of plan: QueryPlan) -> [QueryExplanation.Index] {
    let direction = Planner.text(plan.reverse ? .descending : .ascending)
    func index(_ scope: String, _ parts: [String]) -> QueryExplanation.Index {
      QueryExplanation.Index(
        queryScope: scope, properties: "(" + (parts + ["__name__ \(direction)"]).joined(separator: ", ") + ")"
      )
    }
    switch plan.source {
    case .nothing: return []
    case .composite(let scan):
      let index = scan.index.index
      return [
        QueryExplanation.Index(
          queryScope: index.scope == .collection ? "Collection" : "Collection group",
          properties: index.properties(reversed: plan.reverse))
      ]
    case .names, .rows: return [index("Collection", [])]
    case .group: return [index("Collection group", [])]
    case .subtree: return [index("Database", [])]
    case .index:
      return [index("Collection", query.orders.first.map { ["\($0.field) \(direction)"] } ?? [])]
    case .entries:
      var seen: Set<QueryExplanation.Index> = []
      return intersected.map { index("Collection", ["\($0.field) \($0.isElement ? "CONTAINS" : direction)"]) }
        .filter { seen.insert($0).inserted }
    }
  }

  static func text(_ direction: StructuredQuery.Direction) -> String {
    direction == .ascending ? "ASC" : "DESC"
  }
}
