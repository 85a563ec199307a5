// Security rules as the engine publishes them. The engine does not know their language: the caller that releases rules
// passes the policy that they compile to.

package import Access

/// Security rules: their text, and the policy that decides by them.
package struct ReleasedRules: Sendable {
  /// The text of the rules file.
  package var source: String
  /// The policy.
  package var policy: any AccessPolicy<FirestoreAccess>
  /// The ruleset; nil to store a new one with the text, unless that text is in force already.
  package var ruleset: StoredRuleset?

  /// Makes rules of a text and its compiled form.
  package init(source: String, policy: any AccessPolicy<FirestoreAccess>) {
    self.source = source
    self.policy = policy
  }

  /// Makes rules of a stored ruleset and its compiled form.
  package init(_ ruleset: StoredRuleset, policy: any AccessPolicy<FirestoreAccess>) {
    source = ruleset.source
    self.policy = policy
    self.ruleset = ruleset
  }

  /// Whether a release has put these rules in force.
  func isReleased(by release: RulesRelease) -> Bool {
    if let ruleset { return ruleset.header.id.utf8.elementsEqual(release.rulesetID.utf8) }
    return source.utf8.elementsEqual(release.source.utf8)
  }
}
