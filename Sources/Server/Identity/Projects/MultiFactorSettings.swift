// The second factors that a project or tenant offers.

package import JSON

/// Settings of second factors.
package struct MultiFactorSettings: Sendable, Equatable {
  /// Whether second factors are offered.
  package enum State: String, Sendable {
    case disabled = "DISABLED"
    case enabled = "ENABLED"
    case mandatory = "MANDATORY"
  }

  package var state: State
  /// Whether codes in text messages are offered.
  package var hasPhone: Bool
  /// The number of 30-second steps by which a client's clock may differ; nil if time-based codes are not offered.
  package var totpAdjacentIntervals: Int?

  /// Maximum of ``totpAdjacentIntervals`` that the hosted product accepts.
  package static let maximumAdjacentIntervals = 10

  /// No second factors.
  package static let disabled = MultiFactorSettings(state: .disabled, hasPhone: false)
  /// The default of a project of the emulator.
  package static let phone = MultiFactorSettings(state: .enabled, hasPhone: true)

  /// Creates settings.
  package init(state: State, hasPhone: Bool, totpAdjacentIntervals: Int? = nil) {
    self.state = state
    self.hasPhone = hasPhone
    self.totpAdjacentIntervals = totpAdjacentIntervals
  }

  /// Whether accounts with second factors must use one of them to sign in.
  package var isEnabled: Bool { state != .disabled }
  /// Whether a phone number can be enrolled.
  package var offersPhone: Bool { isEnabled && hasPhone }
  /// Whether time-based codes can be enrolled.
  package var offersTOTP: Bool { isEnabled && totpAdjacentIntervals != nil }

  /// The JSON form of the API.
  package var json: JSONObject {
    var object: JSONObject = [
      "state": .string(state.rawValue), "enabledProviders": .array(hasPhone ? [.string("PHONE_SMS")] : []),
    ]
    if let totpAdjacentIntervals {
      object["providerConfigs"] = .array([
        .object([
          "state": .string("ENABLED"),
          "totpProviderConfig": .object(["adjacentIntervals": .int(Int64(totpAdjacentIntervals))]),
        ])
      ])
    }
    return object
  }

  /// Reads the JSON form of the API. Missing members mean that nothing is offered.
  package init(json object: JSONObject) {
    state = object["state"]?.string.flatMap(State.init(rawValue:)) ?? .disabled
    hasPhone = (object["enabledProviders"]?.array ?? []).contains(.string("PHONE_SMS"))
    for provider in object["providerConfigs"]?.array ?? [] {
      guard let totp = provider["totpProviderConfig"], provider["state"]?.string != "DISABLED" else {
        continue
      }
      let intervals = Int(clamping: totp["adjacentIntervals"]?.int ?? 5)
      totpAdjacentIntervals = min(max(intervals, 0), Self.maximumAdjacentIntervals)
    }
  }
}
