// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {CurveMath} from "../libraries/CurveMath.sol";

/// @title Bulk access to the curve arithmetic, for differential tests. Never deployed with the platform.
contract CurveMathHarness {
    /// @dev One trade. Words are as posted: none for an empty side. Asks are used when `isBuy`, bids otherwise.
    struct Case {
        uint256[] askWords;
        uint256[] bidWords;
        bool isBuy;
        bool exactOut;
        uint256 amount;
        uint256 consumed;
        uint256 lotUnits;
        uint256 tickLotUnits;
    }

    /// @dev `outcome`: 0 filled, 1 zero amount, 2 amount too large, 3 insufficient depth, 4 output rounds to zero. The amounts are zero
    /// unless filled; `available` is only meaningful for outcome 3.
    struct Result {
        uint8 outcome;
        uint256 baseAmount;
        uint256 quoteAmount;
        uint256 available;
    }

    mapping(uint256 key => uint256[4] words) private _stored;

    /// @notice `CurveMath.trade` of each case.
    function trades(Case[] calldata cases) external pure returns (Result[] memory results) {
        results = new Result[](cases.length);
        for (uint256 i = 0; i < cases.length; ++i) {
            Case calldata c = cases[i];
            results[i] = _result(CurveMath.trade(c.isBuy ? c.askWords : c.bidWords, _request(c)));
        }
    }

    /// @notice Stores four words under `key`, so that `tradeStored` can walk them in storage as a swap does.
    function store(uint256 key, uint256[4] calldata words) external {
        _stored[key] = words;
    }

    /// @notice The same trade against the words stored under `key`; the words of the case are ignored.
    function tradeStored(uint256 key, Case calldata c) external view returns (Result memory) {
        CurveMath.Trade memory t;
        (t.baseAmount, t.quoteAmount, t.available) = CurveMath.tradeStored(
            _stored[key],
            c.isBuy,
            c.exactOut,
            c.amount,
            c.consumed,
            c.lotUnits,
            c.tickLotUnits
        );
        t.outcome = CurveMath.outcomeOf(c.amount, t.baseAmount, t.available);
        return _result(t);
    }

    /// @notice Best ask and best bid in subticks; zero for a side without depth.
    function bestSubticks(
        uint256[] calldata askWords,
        uint256[] calldata bidWords
    ) external pure returns (uint256 ask, uint256 bid) {
        return (CurveMath.bestSubticks(askWords, true), CurveMath.bestSubticks(bidWords, false));
    }

    function _request(Case calldata c) private pure returns (CurveMath.Request memory) {
        return
            CurveMath.Request({
                isBuy: c.isBuy,
                exactOut: c.exactOut,
                amount: c.amount,
                consumed: c.consumed,
                lotUnits: c.lotUnits,
                tickLotUnits: c.tickLotUnits
            });
    }

    function _result(CurveMath.Trade memory t) private pure returns (Result memory) {
        return Result(uint8(t.outcome), t.baseAmount, t.quoteAmount, t.available);
    }
}
