// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {CurveMath} from "../../contracts/libraries/CurveMath.sol";

/// @notice Where `CurveMath.raisedUnits` looks for the end of a segment. What its loop does is claimed in scripts/smt/lanes.mjs, in bits.
contract Raise {
    /// @dev What is consumed lies above `lots - 1` whole lots and not above `lots`.
    function countsLotsRoundedUp(uint256 consumed, uint256 lotUnits) external pure {
        require(consumed > 0);
        require(consumed < 2 ** 92);
        require(lotUnits > 0);
        require(lotUnits <= 10 ** 18);
        uint256 lots = CurveMath._lotsUp(consumed, lotUnits);
        assert(lots * lotUnits >= consumed);
        assert(lots * lotUnits < consumed + lotUnits);
    }
}
