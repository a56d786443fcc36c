// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Deployer} from "./Deployer.sol";
import {RandomCurves} from "./RandomCurves.sol";

/// @notice The curve arithmetic as its harness offers it.
interface ICurveMath {
    enum Outcome {
        Filled,
        ZeroAmount,
        AmountTooLarge,
        InsufficientDepth,
        ZeroOutput
    }

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

    struct Trade {
        Outcome outcome;
        uint256 baseAmount;
        uint256 quoteAmount;
        uint256 available;
    }

    function trades(Case[] calldata cases) external pure returns (Trade[] memory results);
    function store(uint256 key, uint256[4] calldata words) external;
    function tradeStored(uint256 key, Case calldata c) external view returns (Trade memory);
    function bestSubticks(
        uint256[] calldata askWords,
        uint256[] calldata bidWords
    ) external pure returns (uint256 ask, uint256 bid);
}

/// @notice Single trades on given words, by the code that is deployed.
abstract contract CurveArithmetic is RandomCurves, Deployer {
    uint256 internal constant MAX_AMOUNT = 2 ** 100 - 1;

    ICurveMath internal math;

    function setUp() public virtual {
        math = ICurveMath(deploy("CurveMathHarness.sol:CurveMathHarness", ""));
    }

    function _trade(
        uint256[] memory words,
        bool isBuy,
        bool exactOut,
        uint256 amount,
        uint256 consumed,
        uint256[2] memory grid
    ) internal view returns (ICurveMath.Trade memory) {
        ICurveMath.Case[] memory cases = new ICurveMath.Case[](1);
        cases[0] = _case(words, isBuy, exactOut, amount, consumed, grid);
        return math.trades(cases)[0];
    }

    /// @param grid lotUnits and tickLotUnits.
    function _case(
        uint256[] memory words,
        bool isBuy,
        bool exactOut,
        uint256 amount,
        uint256 consumed,
        uint256[2] memory grid
    ) internal pure returns (ICurveMath.Case memory c) {
        (c.isBuy, c.exactOut, c.amount, c.consumed) = (isBuy, exactOut, amount, consumed);
        (c.lotUnits, c.tickLotUnits) = (grid[0], grid[1]);
        if (isBuy) c.askWords = words;
        else c.bidWords = words;
    }
}
